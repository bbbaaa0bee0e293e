import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'undici';
import { createOutcomes, type Outcome, type Outcomes } from './outcomes.ts';
import type { LoadOptions } from './options.ts';
import { createRequests, type LoadRequest } from './requests.ts';

export interface LoadRun {
  readonly outcomes: Outcomes;
  /** Time during which requests were sent, ms. */
  readonly ms: number;
}

/** Time limit of a request, ms; a request that takes longer has failed. */
const TIMEOUT_MS = 60_000;
/** Pause after a failed connection, ms, so that a stopped server is not asked a thousand times a second. */
const RECONNECT_MS = 100;

/**
 * Sends requests over several connections, one at a time on each, until the time is over or `signal` aborts; requests
 * on their way are still answered. With a rate, request n is due n / rate after the start, regardless of earlier
 * requests, and its latency counts from that time, so that a server that stalls does not slow down the measurement.
 * @param onProgress called from time to time with the results so far
 */
export async function runLoad(
  url: string,
  options: LoadOptions,
  { signal, onProgress }: { readonly signal: AbortSignal; readonly onProgress: (run: LoadRun) => void },
): Promise<LoadRun> {
  const outcomes = createOutcomes();
  const nextRequest = createRequests(options);
  const startedAt = performance.now();
  const endsAt = startedAt + options.durationMs;
  let sent = 0;
  let isOver = false;
  const over = () => (isOver ||= signal.aborted || performance.now() >= endsAt);

  /** Time at which the next request is due; the current time if there is no rate. */
  const takeTurn = () => (options.rate === undefined ? performance.now() : startedAt + (sent++ * 1000) / options.rate);

  async function work(): Promise<void> {
    const client = new Client(url, { headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS, pipelining: 1 });
    while (!over()) {
      const dueAt = takeTurn();
      if (dueAt >= endsAt) break;
      await pause(Math.max(0, dueAt - performance.now()), undefined, { signal }).catch(() => {});
      if (over()) {
        if (dueAt < performance.now()) outcomes.recordUnsent(performance.now() - dueAt);
        break;
      }
      const request = nextRequest();
      const outcome = await send(client, request);
      outcomes.record(request.kind, outcome, performance.now() - dueAt);
      if (typeof outcome === 'string') await pause(RECONNECT_MS);
    }
    await client.close();
  }

  const run = (): LoadRun => ({ outcomes, ms: performance.now() - startedAt });
  const timer = setInterval(() => onProgress(run()), 250);
  try {
    await Promise.all(Array.from({ length: options.connections }, work));
  } finally {
    clearInterval(timer);
  }
  const ended = run();
  // Requests that were due and that no connection sent.
  for (
    let dueAt = takeTurn();
    options.rate !== undefined && dueAt < Math.min(endsAt, startedAt + ended.ms);
    dueAt = takeTurn()
  )
    outcomes.recordUnsent(startedAt + ended.ms - dueAt);
  onProgress(ended);
  return ended;
}

/** Sends a request and reads its whole answer, since an unread body would block the connection. */
async function send(client: Client, { key, method, path, body }: LoadRequest): Promise<Outcome> {
  try {
    const reply = await client.request({
      method,
      path,
      headers: {
        ...(key === '' ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body }),
    });
    await reply.body.dump({ limit: Number.MAX_SAFE_INTEGER });
    return reply.statusCode;
  } catch (error) {
    return (error as { code?: string }).code ?? 'no answer';
  }
}
