import { isBound, isEngineError, type Job, type JobState } from '../../engine/index.ts';
import { stateEvents, streamState, type WatchOptions } from '../event-stream.ts';
import { nextJob } from '../next-job.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import { discardedReply, jobPage, jobSchema, jobsQuery } from '../schemas/jobs.ts';
import { tenantOf } from '../tenant-of.ts';
import { PAGE_END } from './memory-list.ts';
import { sendListed } from './send-page.ts';
import { backlogItem, jobItem } from '../wire/jobs.ts';

const JOB_ID = { description: 'Id of the job.', example: '01a1fe30-e25d-71cf-b719-06918c2a54a4' } as const;
const NO_JOB = 'No job has this id.';
const JOB_NOW = { 200: { description: 'The job as it is now.', json: jobSchema } } as const;
const ENDED: ReadonlySet<JobState> = new Set(['done', 'dead', 'cancelled']);
const POLL_MS = 100;
/** Time after which it is looked up again whether a caller may see the job that it watches (ms). */
const CHECK_MS = 5_000;

export const jobRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/jobs',
    name: 'listJobs',
    access: 'read',
    summary: 'Lists the jobs of the ledger, the newest first',
    description: `\`?state=dead\` lists the dead letters: jobs that have given up. ${PAGE_END}`,
    query: jobsQuery,
    replies: { 200: { description: 'A page of jobs, with counts of the whole ledger.', json: jobPage } },
    async handle(call) {
      const { state, kind, l, u: offset } = call.query;
      const { counts, backlog, ...listed } = await call.tenant.listJobs({ state, kind, limit: l, offset });
      const now = call.api.engine.clock.now();
      const more = { counts, backlog: backlog.map((step) => backlogItem(step, now)) };
      await sendListed(call, listed, { offset, toJson: jobItem, more });
    },
  }),
  route({
    method: 'get',
    path: '/jobs/:id',
    name: 'getJob',
    access: 'read or add',
    forBoundKeys: true,
    summary: 'Shows one job',
    description: 'A key with the role `add` finds the jobs of what it wrote itself.',
    params: { id: JOB_ID },
    replies: { 200: { description: 'The job.', json: jobSchema } },
    errors: { not_found: NO_JOB },
    async handle({ tenant, params, send }) {
      send(200, jobItem(await tenant.getJob(params.id)));
    },
  }),
  route({
    method: 'get',
    path: '/jobs/:id/events',
    name: 'watchJob',
    access: 'read or add',
    forBoundKeys: true,
    summary: 'Streams a job as it changes',
    description:
      'The reply is a stream of server-sent events: `state` with the job, at once and at each change, and `gone` if ' +
      'the job is removed. The stream ends when the job has ended or the server stops. A comment every 15 s keeps it ' +
      'open.',
    params: { id: JOB_ID },
    replies: stateEvents(jobSchema, { id: JOB_ID.example, state: 'done' }),
    errors: { not_found: NO_JOB },
    async handle(call) {
      await streamState(call, await watchOf(call, call.params.id));
    },
  }),
  route({
    method: 'post',
    path: '/jobs/:id/retry',
    name: 'retryJob',
    access: 'admin',
    summary: 'Starts a dead, failed or cancelled job again, with its failures set to 0',
    params: { id: JOB_ID },
    replies: JOB_NOW,
    errors: {
      not_found: NO_JOB,
      conflict: 'The job is in another state, or its memory or document has a newer job or was deleted.',
    },
    async handle({ tenant, params, send }) {
      send(200, jobItem(await tenant.retryJob(params.id)));
    },
  }),
  route({
    method: 'post',
    path: '/jobs/:id/cancel',
    name: 'cancelJob',
    access: 'admin',
    summary: 'Ends a queued, active or failed job',
    description: 'Its memory stays, as `failed` if it has no vector yet, and queries find it by its words.',
    params: { id: JOB_ID },
    replies: JOB_NOW,
    errors: { not_found: NO_JOB, conflict: 'The job has ended, or waits for the chunks of its document.' },
    async handle({ tenant, params, send }) {
      send(200, jobItem(await tenant.cancelJob(params.id)));
    },
  }),
  route({
    method: 'delete',
    path: '/jobs/:id',
    name: 'discardJob',
    access: 'admin',
    summary: 'Removes a dead or cancelled job from the list',
    params: { id: JOB_ID },
    replies: { 200: { description: 'The job was removed.', json: discardedReply } },
    errors: { not_found: NO_JOB, conflict: 'The job is in another state.' },
    async handle({ tenant, params, send }) {
      await tenant.discardJob(params.id);
      send(200, { ok: true });
    },
  }),
];

/**
 * Returns how a job is watched. All that watch jobs of a tenant share reads of the ledger, which do not ask whether a
 * caller may see the job: this is looked up at the beginning, and every 5 s for keys that may see only some.
 * @throws EngineError `not_found` if there is no such job, or the caller may not see it
 */
async function watchOf({ api, tenant, principal }: TenantCall, id: string): Promise<WatchOptions> {
  const watched = (job: Job) => ({ item: jobItem(job), hasEnded: ENDED.has(job.state) });
  const seesOwn = principal.role === 'add';
  const seesSome = seesOwn || isBound(principal);
  const first = watched(await tenant.getJob(id));
  let checkedAt = performance.now();
  const read = async () => {
    const job = await nextJob(api.engine, tenant.id, id);
    if (!seesSome || performance.now() - checkedAt < CHECK_MS) return watched(job);
    checkedAt = performance.now();
    const present = await tenantOf(api.engine, principal);
    const seen = await present.getJob(id).catch((error: unknown) => {
      // Readers are too busy, or the tenant moves: the next check tells.
      if (isEngineError(error, 'unavailable')) return job;
      throw error;
    });
    return watched(seen);
  };
  const key = `job ${tenant.id} ${id}${seesOwn ? ` ${principal.keyId}` : ''}`;
  return { key, pollMs: POLL_MS, first, read };
}
