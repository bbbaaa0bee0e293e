import { EngineError } from '../../engine/errors.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { parse, timelineSchema } from '../schemas.ts';
import { timelineItem } from '../wire.ts';

export const timelineRoutes: readonly Route[] = [
  { method: 'get', path: '/memory/:id/timeline', access: 'read', handle: timeline },
];

function timeline({ tenant, request, response }: TenantCall): void {
  const { before, after, session, user_id } = parse(timelineSchema, request.query);
  const around = tenant.timeline(request.params['id'] as string, { before, after, sameSession: session });
  // Another user's memory is as absent as none.
  if (user_id !== undefined && user_id !== around.anchor.userId)
    throw new EngineError('not_found', 'no memory with this id');
  sendJson(response, 200, timelineItem(around));
}
