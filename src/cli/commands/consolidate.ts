import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { counted, dim, oneLine, print, table } from '../terminal.ts';

export interface ConsolidateOptions extends ConnectionOptions {
  readonly user?: string;
  readonly dryRun?: boolean;
  readonly again?: boolean;
  readonly json?: boolean;
}

const WAIT_MS = 60_000;

/**
 * Runs `cairn consolidate`: gathers groups of memories that say nearly the same or follow one topic, each into one
 * memory, waits up to a minute, and prints how many memories were gathered into how many. With `dryRun` it changes
 * nothing and prints the texts that it would make.
 * @throws CliError if the job has failed; with `json`, the reply is printed before
 */
export async function consolidate({ user, dryRun, again, json, ...options }: ConsolidateOptions): Promise<void> {
  const client = connect(options);
  const reply = await client.consolidate({
    wait: dryRun ? undefined : WAIT_MS,
    user_id: user,
    ...(dryRun ? { dry_run: true } : {}),
    ...(again ? { again: true } : {}),
  });
  if (json) print(JSON.stringify(reply));
  if ('error' in reply && reply.error !== undefined)
    throw new CliError(`job ${reply.job_id} is ${reply.state}: ${reply.error.message}`);
  if (json) return;
  if ('proposals' in reply) {
    for (const { user_id: owner, content, source_ids: sources } of reply.proposals)
      print(
        dim(`${counted(sources.length, 'memory', 'memories')} of ${owner || 'nobody'}`),
        ...content.split('\n').map(oneLine),
        '',
      );
    const total = counted(reply.proposals.length, 'memory', 'memories');
    return print(`${total} would be made${reply.truncated ? ', and more' : ''}.`);
  }
  const { job_id: id, state } = reply;
  if (state !== 'done') return print(`${id}  ${state}, still being worked on after ${WAIT_MS / 1_000} s`);
  const { items, next } = await client.listConsolidations({ job_id: id, l: 1_000 });
  const sources = items.reduce((sum, { source_ids: ids }) => sum + ids.length, 0);
  const made = `${next === undefined ? '' : 'over '}${counted(items.length, 'memory', 'memories')}`;
  print(items.length === 0 ? 'There was nothing to gather.' : `${sources} memories were gathered into ${made}.`);
  if (items.length > 0) print(dim(`To undo all of it: cairn consolidations undo ${id}`));
}

/** Runs `cairn consolidations list`: prints up to 1,000 consolidations, newest first. */
export async function listConsolidations({ user, json, ...options }: ConsolidateOptions): Promise<void> {
  const page = await connect(options).listConsolidations({ l: 1_000, user_id: user });
  if (json) return print(JSON.stringify(page));
  const rows = page.items.map(({ id, job_id: job, memory_id: memory, source_ids: sources, user_id: owner }) => [
    id,
    String(sources.length),
    owner,
    memory ?? 'undone',
    job,
  ]);
  const [head, ...body] = table([['id', 'sources', 'user', 'memory', 'job'], ...rows], '<><<<');
  print(dim(head!), ...body);
}

/** Runs `cairn consolidations undo ID`: undoes one consolidation, or all consolidations of a run. */
export async function undoConsolidation(id: string, options: ConnectionOptions): Promise<void> {
  const { undone } = await connect(options).undoConsolidation({ id });
  print(`${counted(undone, 'gathered memory', 'gathered memories')} erased; the sources rank as before`);
}
