import type { jobItem } from '../../api/wire.ts';
import type { JobCounts, JobState } from '../../engine/types.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { age, count, cut, dim, print, red, table, widthOfTerminal } from '../terminal.ts';

type JobItem = ReturnType<typeof jobItem>;

export interface JobsReply {
  readonly items: readonly JobItem[];
  readonly total: number;
  readonly counts: JobCounts;
}

/** `cairn jobs list` */
export async function listJobs(
  options: ConnectionOptions & { readonly state?: JobState; readonly limit: number },
): Promise<void> {
  const { state, limit } = options;
  const { items, total, counts } = await connect(options).get<JobsReply>(
    `/jobs?l=${limit}${state === undefined ? '' : `&state=${state}`}`,
  );
  const inAll = Object.entries(counts).filter(([, n]) => n > 0);
  print(inAll.length === 0 ? 'No jobs.' : inAll.map(([name, n]) => `${name} ${count(n)}`).join(' · '));
  if (items.length === 0) return;
  const rows = table([['job', 'state', 'step', 'failures', 'made', 'memory'], ...items.map(rowOf)], '<<<>><');
  print('', dim(rows[0]!));
  for (const [place, job] of items.entries()) {
    print(rows[place + 1]!);
    if (job.error !== null) print(`  ${red(cut(`${job.error.code}: ${job.error.message}`, widthOfTerminal() - 2))}`);
  }
  if (total > items.length) print(dim(`and ${count(total - items.length)} more: --limit shows up to 1,000`));
}

/** `cairn jobs retry ID` */
export async function retryJob(id: string, options: ConnectionOptions): Promise<void> {
  const job = await connect(options).post<JobItem>(`/jobs/${encodeURIComponent(id)}/retry`);
  print(`${job.id}  ${job.state} again at ${job.step}`);
}

/** `cairn jobs cancel ID` */
export async function cancelJob(id: string, options: ConnectionOptions): Promise<void> {
  const job = await connect(options).post<JobItem>(`/jobs/${encodeURIComponent(id)}/cancel`);
  print(`${job.id}  ${job.state}; its memory stays and is found by its words`);
}

/** `cairn jobs discard ID` */
export async function discardJob(id: string, options: ConnectionOptions): Promise<void> {
  await connect(options).delete(`/jobs/${encodeURIComponent(id)}`);
  print(`${id}  discarded`);
}

function rowOf(job: JobItem): string[] {
  return [job.id, job.state, job.step, String(job.attempts + job.crashes), age(job.created_at), job.memory_id ?? ''];
}
