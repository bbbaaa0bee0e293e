/**
 * `npm run load` sends mixed requests to a server and reports the results. The exit code is 1 if a request failed in a
 * way in which no server should fail, and 2 for wrong options.
 */
import { CommanderError } from 'commander';
import { startProgress } from '../../src/cli/progress.ts';
import { count, counted, dim, print, span } from '../../src/cli/terminal.ts';
import { parseOptions, type LoadOptions } from './options.ts';
import { runLoad, type LoadRun } from './run-load.ts';
import { startThrowawayService } from './throwaway-service.ts';

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2), process.env);
  const service = options.url === undefined ? await startThrowawayService(options.tenants) : undefined;
  const url = options.url ?? service!.url;
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  try {
    const keys = service?.keys ?? options.keys;
    print(describe(url, { ...options, keys }));
    const { outcomes, ms } = await runWithProgress(url, { ...options, keys }, stop.signal);
    print('', ...outcomes.summary(ms / 1000), '', dim(await describeRest(url, keys, service === undefined)));
    return outcomes.failed > 0 || outcomes.answered === 0 ? 1 : 0;
  } finally {
    await service?.stop();
  }
}

function describe(url: string, { keys, users, connections, rate, durationMs }: LoadOptions): string {
  const pace = rate === undefined ? 'as fast as they are answered' : `${count(rate)} a second`;
  const tenants = `${counted(keys.length, 'tenant')} of ${counted(users, 'user')}`;
  return `Load on ${url}: ${tenants}, ${counted(connections, 'connection')}, ${pace}, for ${span(durationMs)}`;
}

async function runWithProgress(url: string, options: LoadOptions, signal: AbortSignal): Promise<LoadRun> {
  const progress = startProgress('Load', options.durationMs);
  const onProgress = ({ outcomes, ms }: LoadRun) => {
    const { answered, failed, queryP95Ms } = outcomes;
    const notes = [`${((answered / ms) * 1000).toFixed(0)} a second`];
    if (Number.isFinite(queryP95Ms)) notes.push(`query p95 ${queryP95Ms.toFixed(0)} ms`);
    progress.update(Math.min(ms, options.durationMs), [...notes, `${failed} failed`].join(', '));
  };
  try {
    const run = await runLoad(url, options, { signal, onProgress });
    // The last request may have been answered before the last progress report.
    if (!signal.aborted) onProgress({ ...run, ms: Math.max(run.ms, options.durationMs) });
    return run;
  } finally {
    progress.stop();
  }
}

/** Describes the unfinished jobs of the server, and whether the added memories stay. */
async function describeRest(url: string, keys: readonly string[], isKept: boolean): Promise<string> {
  const waiting = await Promise.all(keys.map((key) => countWaiting(url, key)));
  const jobs = waiting.reduce((sum, one) => sum + one, 0);
  const rest = Number.isNaN(jobs) ? '' : `${counted(jobs, 'job')} of background work left. `;
  const what = isKept
    ? 'What was added stays: DELETE /users/load-0/memories and so on removes it.'
    : 'The store is gone again.';
  return `${rest}${what}`;
}

/** Counts the unfinished jobs of a key's tenant; NaN if the server does not answer. */
async function countWaiting(url: string, key: string): Promise<number> {
  try {
    const headers: Record<string, string> = key === '' ? {} : { authorization: `Bearer ${key}` };
    const reply = await fetch(new URL('/jobs?l=1', url), { headers, signal: AbortSignal.timeout(5_000) });
    const { counts } = (await reply.json()) as { counts: Readonly<Record<string, number>> };
    return counts['queued']! + counts['active']! + counts['failed']!;
  } catch {
    return NaN;
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof CommanderError)) process.stderr.write(`load: ${(error as Error).message}\n`);
  process.exitCode = error instanceof CommanderError ? (error.exitCode === 0 ? 0 : 2) : 1;
}
