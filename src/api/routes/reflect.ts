import { readJson } from '../read-body.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { addQuerySchema, parse, reflectSchema } from '../schemas.ts';
import { waitForWrites, waitMsOf } from '../wait-for-writes.ts';
import { memoryItem } from '../wire.ts';

/** It stands before `/memory/:id`, which would take `reflect` for an id. */
export const reflectRoutes: readonly Route[] = [
  { method: 'post', path: '/memory/reflect', access: 'write', handle: reflect },
];

/** One job writes a few; those of others may have come since. */
const LOOKED_AT = 20;

async function reflect(call: TenantCall): Promise<void> {
  const { tenant, request, response } = call;
  const waitMs = waitMsOf(call, parse(addQuerySchema, request.query).wait);
  const { user_id, session_id } = parse(reflectSchema, (await readJson(request)).value);
  const userId = user_id ?? '';
  const { jobId, token } = await tenant.reflect({ userId, sessionId: session_id ?? null });
  response.setHeader('location', `/jobs/${jobId}`);
  if (waitMs === 0 || !(await waitForWrites(call, token, waitMs))) {
    return sendJson(response, 202, { job_id: jobId, state: 'queued', token });
  }
  const { state, error } = tenant.getJob(jobId);
  const reflections = tenant
    .listReflections(userId, LOOKED_AT)
    .filter(({ metadata }) => metadata['reflection_job'] === jobId);
  sendJson(response, 200, {
    ...{ job_id: jobId, state, reflections: reflections.map(memoryItem) },
    ...(error === null ? {} : { error }),
  });
}
