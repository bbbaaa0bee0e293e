import type { JobState } from '../../engine/types.ts';
import { streamState } from '../event-stream.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { jobsSchema, parse } from '../schemas.ts';
import { backlogItem, jobItem } from '../wire.ts';

const ENDED: ReadonlySet<JobState> = new Set(['done', 'dead', 'cancelled']);

/** `GET /jobs?state=dead` is the list of dead letters. */
export const jobRoutes: readonly Route[] = [
  { method: 'get', path: '/jobs', access: 'read', handle: list },
  { method: 'get', path: '/jobs/:id', access: 'read', handle: get },
  { method: 'get', path: '/jobs/:id/events', access: 'read', handle: events },
  { method: 'post', path: '/jobs/:id/retry', access: 'admin', handle: retry },
  { method: 'post', path: '/jobs/:id/cancel', access: 'admin', handle: cancel },
  { method: 'delete', path: '/jobs/:id', access: 'admin', handle: discard },
];

function list({ api, tenant, request, response }: TenantCall): void {
  const { state, kind, l, u } = parse(jobsSchema, request.query);
  const { items, total, counts, backlog } = tenant.listJobs({ state, kind, limit: l, offset: u });
  const now = api.engine.clock.now();
  sendJson(response, 200, {
    items: items.map(jobItem),
    total,
    counts,
    backlog: backlog.map((step) => backlogItem(step, now)),
  });
}

function get({ tenant, request, response }: TenantCall): void {
  sendJson(response, 200, jobItem(tenant.getJob(request.params['id'] as string)));
}

const POLL_MS = 100;

function events(call: TenantCall): void {
  const id = call.request.params['id'] as string;
  const { tenant } = call;
  const read = () => {
    const job = tenant.getJob(id);
    return { item: jobItem(job), hasEnded: ENDED.has(job.state) };
  };
  streamState(call, { key: `job ${tenant.id} ${id}`, pollMs: POLL_MS, read });
}

async function retry({ tenant, request, response }: TenantCall): Promise<void> {
  sendJson(response, 200, jobItem(await tenant.retryJob(request.params['id'] as string)));
}

async function cancel({ tenant, request, response }: TenantCall): Promise<void> {
  sendJson(response, 200, jobItem(await tenant.cancelJob(request.params['id'] as string)));
}

async function discard({ tenant, request, response }: TenantCall): Promise<void> {
  await tenant.discardJob(request.params['id'] as string);
  sendJson(response, 200, { ok: true });
}
