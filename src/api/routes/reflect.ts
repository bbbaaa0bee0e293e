import { route, type Route } from '../route.ts';
import { reflectSchema } from '../schemas/memories.ts';
import { reflectionQueued, reflectionReply } from '../schemas/memory-replies.ts';
import { waitQuery } from '../schemas/values.ts';
import { readFinished, waitMsOf } from '../wait-for-writes.ts';
import { memoryItem } from '../wire/memories.ts';

/**
 * Number of latest reflections (conclusions that the language model wrote down) among which those of one job are looked
 * for. A job writes a few, and other jobs may have added more since.
 */
const SEARCHED_REFLECTIONS = 20;

/**
 * The route that starts a reflection, in which the language model writes down conclusions from memories. It must stand
 * before `/memory/:id`, since Express would otherwise take `reflect` for an id.
 */
export const reflectRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/memory/reflect',
    name: 'reflect',
    access: 'write',
    limited: ['queries'],
    forBoundKeys: true,
    alsoReads: true,
    summary: 'Lets the language model write down conclusions from the latest memories',
    description:
      'Without `OM_LLM_MODEL` the reply is a 400. If the same reflection is queued or running, the reply names its ' +
      'job. With `wait` the reply comes when the job has ended, with the memories that it wrote.',
    query: waitQuery,
    headers: ['prefer'],
    body: { json: reflectSchema, example: { user_id: 'ana' } },
    replies: {
      202: {
        description: 'The reflection is queued; a query with the token waits for it.',
        json: reflectionQueued,
        headers: ['location'],
      },
      200: { description: 'The job has ended.', json: reflectionReply, headers: ['location'] },
    },
    errors: { not_found: 'The user has no memories.' },
    async handle(call) {
      const { tenant, response, send } = call;
      const waitMs = waitMsOf(call, call.query.wait);
      const { user_id, session_id } = await call.readBody();
      const userId = user_id ?? '';
      const { jobId, token } = await tenant.reflect({ userId, sessionId: session_id ?? null });
      response.setHeader('location', `/jobs/${jobId}`);
      const finished = await readFinished(call, { token, timeoutMs: waitMs }, async () => ({
        job: await tenant.getJob(jobId),
        latest: await tenant.listReflections(userId, SEARCHED_REFLECTIONS),
      }));
      if (finished === undefined) return send(202, { job_id: jobId, state: 'queued', token });
      const { state, error } = finished.job;
      const reflections = finished.latest.filter(({ metadata }) => metadata['reflection_job'] === jobId);
      send(200, {
        job_id: jobId,
        state,
        reflections: reflections.map(memoryItem),
        ...(error === null ? {} : { error }),
      });
    },
  }),
];
