import type { Tenant } from '../../engine/engine.ts';
import { EngineError, isEngineError } from '../../engine/errors.ts';
import type { Job, JobState } from '../../engine/types.ts';
import type { TenantCall } from '../route.ts';
import { jobItem } from '../wire.ts';

const POLL_MS = 100;
/** Proxies close a connection on which nothing moves. */
const PING_EVERY_POLLS = 150;
const MAX_STREAMS = 1_000;
const ENDED: ReadonlySet<JobState> = new Set(['done', 'dead', 'cancelled']);

let openStreams = 0;

/**
 * A job as server-sent events: `state` on connect and at each change, until the job ended, was removed (`gone`), the client
 * left or the server stops. The ledger is asked, since any process may have worked on the job.
 */
export function streamEvents({ api, tenant, request, response }: TenantCall): void {
  const id = request.params['id'] as string;
  const first = tenant.getJob(id);
  if (openStreams >= MAX_STREAMS)
    throw new EngineError('unavailable', `${MAX_STREAMS} event streams are open`, { retryAfterMs: 5_000 });
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
  let polls = 0;
  let sent = '';
  const report = (job: Job | undefined) => {
    const data = job === undefined ? '' : JSON.stringify(jobItem(job));
    if (data !== sent)
      response.write(job === undefined ? 'event: gone\ndata: {}\n\n' : `event: state\ndata: ${data}\n\n`);
    sent = data;
    if (job === undefined || ENDED.has(job.state)) response.end();
  };
  const poll = () => {
    if (++polls % PING_EVERY_POLLS === 0) response.write(': ping\n\n');
    try {
      report(findJob(tenant, id));
    } catch {
      // The file is closed or locked: whoever listens connects again and is then told why.
      response.destroy();
    }
  };
  const end = () => response.end();

  openStreams++;
  const timer = setInterval(poll, POLL_MS);
  api.stop.addEventListener('abort', end);
  response.once('close', () => {
    openStreams--;
    clearInterval(timer);
    api.stop.removeEventListener('abort', end);
  });
  report(first);
  if (api.stop.aborted) end();
}

function findJob(tenant: Tenant, id: string): Job | undefined {
  try {
    return tenant.getJob(id);
  } catch (error) {
    if (isEngineError(error, 'not_found')) return undefined;
    throw error;
  }
}
