import type { BacklogItem, JobItem } from '../../api/schemas/jobs.ts';
import type { JobCounts, JobState } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import { connect, RefusalError, type Client, type ConnectionOptions } from '../client.ts';
import { age, count, counted, cut, dim, print, red, span, table, widthOfTerminal } from '../terminal.ts';

/** Reply of `GET /jobs`. */
export interface JobsReply {
  readonly items: readonly JobItem[];
  /** Number of jobs in the requested state, or of all jobs if none was requested, on all pages. */
  readonly total: number;
  /** Number of jobs in each state, even if one state is requested. */
  readonly counts: JobCounts;
  /** Numbers of unfinished jobs for each step (kind of background work), by state, and the age of the oldest job. */
  readonly backlog: readonly BacklogItem[];
}

/**
 * Runs `cairn jobs list`: prints the number of jobs in each state, the backlog, and the latest jobs, at most `limit`.
 */
export async function listJobs(
  options: ConnectionOptions & { readonly state?: JobState; readonly limit: number },
): Promise<void> {
  const { state, limit } = options;
  const { items, total, counts, backlog } = await connect(options).listJobs({ l: limit, state });
  const inAll = Object.entries(counts).filter(([, n]) => n > 0);
  print(inAll.length === 0 ? 'No jobs.' : inAll.map(([name, n]) => `${name} ${count(n)}`).join(' · '));
  printBacklog(backlog);
  if (counts.dead > 0 && state !== 'dead')
    print(
      '',
      `${red(counted(counts.dead, 'dead letter'))}: cairn jobs --state dead shows why, ` +
        'cairn jobs retry ID or --state dead tries again',
    );
  if (items.length === 0) return;
  const rows = table([['job', 'state', 'step', 'failures', 'made', 'memory'], ...items.map(rowOf)], '<<<>><');
  print('', dim(rows[0]!));
  for (const [place, job] of items.entries()) {
    print(rows[place + 1]!);
    if (job.error !== null) print(`  ${red(cut(`${job.error.code}: ${job.error.message}`, widthOfTerminal() - 2))}`);
  }
  if (total > items.length) print(dim(`and ${count(total - items.length)} more: --limit shows up to 1,000`));
}

/** Prints the number of unfinished jobs for each step, with the age of the oldest job. */
function printBacklog(backlog: readonly BacklogItem[]): void {
  if (backlog.length === 0) return;
  const head = ['step', 'queued', 'active', 'failed', 'oldest'];
  const rows = backlog.map(({ step, queued, active, failed, oldest_age_ms: oldestMs }) => [
    step,
    ...[queued, active, failed].map(count),
    span(oldestMs),
  ]);
  const [first, ...others] = table([head, ...rows], '<>>>>');
  print('', dim(first!), ...others);
}

/**
 * Runs `cairn jobs retry`, for one job or for all jobs in a state.
 * @throws CliError unless exactly one of `id` and `state` is given
 */
export async function retryJobs(
  id: string | undefined,
  { state, ...options }: ConnectionOptions & { readonly state?: JobState },
): Promise<void> {
  if ((id === undefined) === (state === undefined))
    throw new CliError('give the id of a job, or --state', { exitCode: 2 });
  if (state !== undefined) return retryAll(connect(options), state);
  const job = await connect(options).retryJob({ id: id! });
  print(`${job.id}  ${job.state} again at ${job.step}`);
}

const RETRIED_AT_ONCE = 8;
const PAGE = 1_000;
/** Codes of refusals that concern one job only, such as that it is in another state by now, or was discarded. */
const NOT_RETRIED: ReadonlySet<string> = new Set(['conflict', 'not_found']);

/**
 * Retries all jobs in a state, and prints how many could not be retried, because they are in another state by now or
 * discarded, or their memory or document has a newer job or was erased.
 */
async function retryAll(client: Client, state: JobState): Promise<void> {
  // All jobs are listed first: a job that ends in the same state again must not be retried twice.
  const ids: string[] = [];
  for (let total = 1; ids.length < total;) {
    const page = await client.listJobs({ state, l: PAGE, u: ids.length });
    ids.push(...page.items.map(({ id }) => id));
    total = page.items.length === 0 ? 0 : page.total;
  }
  let left = 0;
  for (let first = 0; first < ids.length; first += RETRIED_AT_ONCE) {
    const group = ids.slice(first, first + RETRIED_AT_ONCE);
    for (const result of await Promise.allSettled(group.map((id) => client.retryJob({ id })))) {
      if (result.status === 'fulfilled') continue;
      if (!(result.reason instanceof RefusalError) || !NOT_RETRIED.has(result.reason.code)) throw result.reason;
      left++;
    }
  }
  print(`${counted(ids.length - left, 'job')} started again${left === 0 ? '' : `, ${count(left)} cannot be`}`);
}

/** Runs `cairn jobs cancel ID`: cancels a job that has not ended, so that it is not run again. */
export async function cancelJob(id: string, options: ConnectionOptions): Promise<void> {
  const job = await connect(options).cancelJob({ id });
  print(`${job.id}  ${job.state}${job.step === 'reason' ? '' : '; its memory stays and is found by its words'}`);
}

/** Runs `cairn jobs discard ID`: deletes a job that is dead or cancelled. */
export async function discardJob(id: string, options: ConnectionOptions): Promise<void> {
  await connect(options).discardJob({ id });
  print(`${id}  discarded`);
}

function rowOf(job: JobItem): string[] {
  return [job.id, job.state, job.step, String(job.attempts + job.crashes), age(job.created_at), job.memory_id ?? ''];
}
