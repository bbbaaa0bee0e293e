import type { Consolidation } from '../../engine/index.ts';
import { route, type Route } from '../route.ts';
import {
  consolidateSchema,
  consolidationEnded,
  type ConsolidationItem,
  consolidationList,
  consolidationProposals,
  consolidationQueued,
  consolidationsQuery,
  undoneReply,
} from '../schemas/consolidations.ts';
import { noQuery, waitQuery } from '../schemas/values.ts';
import { readFinished, waitMsOf } from '../wait-for-writes.ts';
import { tenantWhileAdmitted } from '../watch-admission.ts';

const ID = '01a21580-5d1c-7d6a-9a35-0f4a8a0b6f11';
/** Greatest number of proposals in the reply to a dry run. */
const MAX_PROPOSALS = 50;

/** Routes of consolidations: memories that say nearly the same are gathered into one, and that can be undone. */
export const consolidationRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/consolidations',
    name: 'consolidate',
    access: 'write',
    forBoundKeys: true,
    limited: ['queries'],
    alsoReads: true,
    summary: 'Gathers memories that say nearly the same or follow one topic',
    description:
      'Near memories of one user, with equal tags and metadata and the same writer, are gathered into a memory of ' +
      'the type `consolidation` that points to them, its sources. The sources stay as they are, and in answers that ' +
      'have both they rank after the gathered memory (`penalties`). Its text is made of sentences of the sources, or ' +
      'written by the language model if `OM_LLM_MODEL` is set. With `wait` the reply comes when the job has ended. ' +
      'If the same run is queued or under way, the reply names its job.',
    query: waitQuery,
    headers: ['prefer'],
    body: { json: consolidateSchema, optional: true, example: { user_id: 'ana' } },
    replies: {
      202: { description: 'The run is queued.', json: consolidationQueued, headers: ['location'] },
      200: {
        description: 'With `dry_run`: what would be gathered, 50 at most. With `wait`: the run has ended.',
        json: consolidationProposals.or(consolidationEnded),
        example: {
          proposals: [
            {
              user_id: 'ana',
              content: '2026-05-02: Ana swims on Mondays.\n2026-06-01: Ana swims on Mondays and Fridays.',
              source_ids: ['01a1feb9-11f2-7362-8b9d-88949a451b09', '01a1feb9-1288-7569-a1c4-6c51b0283513'],
            },
          ],
          truncated: false,
        },
        headers: ['location'],
      },
    },
    errors: {
      not_found: 'The user has no memories.',
      conflict: 'The same run without `again` has not ended.',
    },
    async handle(call) {
      const { tenant, response, send } = call;
      const waitMs = waitMsOf(call, call.query.wait);
      const { user_id: userId = null, dry_run: isDry = false, again = false } = await call.readBody();
      const scope = { userId, again };
      if (isDry) {
        const { proposals, isCut } = await tenant.proposeConsolidations(scope, MAX_PROPOSALS);
        return send(200, {
          proposals: proposals.map((one) => ({
            user_id: one.userId,
            content: one.content,
            source_ids: [...one.sourceIds],
          })),
          truncated: isCut,
        });
      }
      const { jobId, token } = await tenant.consolidate(scope);
      response.setHeader('location', `/jobs/${jobId}`);
      const finished = await readFinished(call, { token, timeoutMs: waitMs }, () => tenant.getJob(jobId));
      if (finished === undefined) return send(202, { job_id: jobId, state: 'queued', token });
      const { state, error } = finished;
      send(200, { job_id: jobId, state, ...(error === null ? {} : { error }) });
    },
  }),
  route({
    method: 'get',
    path: '/consolidations',
    name: 'listConsolidations',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists consolidations, those that were undone included',
    query: consolidationsQuery,
    replies: { 200: { description: 'A page of consolidations.', json: consolidationList } },
    async handle({ tenant, query, send }) {
      const { user_id: userId, job_id: runId, before, l: limit } = query;
      const items = await tenant.listConsolidations({ userId, runId, before, limit: limit + 1 });
      const page = items.slice(0, limit).map(consolidationItem);
      send(200, { items: page, ...(items.length > limit ? { next: page.at(-1)!.id } : {}) });
    },
  }),
  route({
    method: 'post',
    path: '/consolidations/:id/undo',
    name: 'undoConsolidation',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Undoes a consolidation, or all that one run made',
    description:
      'The gathered memories are erased, and their sources rank as before. They are not gathered again unless ' +
      '`again` asks for it. A run that has not ended is cancelled; if it is over all users, a key that is bound to ' +
      'a user undoes what belongs to that user, and the run goes on. A second call changes nothing.',
    params: { id: { description: 'Id of a consolidation, or of the job of a run.', example: ID } },
    query: noQuery,
    replies: {
      200: { description: 'The consolidation, or the run, is undone.', json: undoneReply, example: { undone: 1 } },
    },
    errors: { not_found: 'No consolidation and no run has this id.' },
    async handle(call) {
      call.send(200, await tenantWhileAdmitted(call).undoConsolidation(call.params.id));
    },
  }),
];

function consolidationItem(one: Consolidation): ConsolidationItem {
  return {
    id: one.id,
    job_id: one.runId,
    user_id: one.userId,
    memory_id: one.memoryId,
    source_ids: [...one.sourceIds],
    method: one.method,
    created_at: one.createdAt,
  };
}
