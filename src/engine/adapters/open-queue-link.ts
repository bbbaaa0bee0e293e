import type { LinkUse, QueueLink, QueueLinkOptions } from './queue-link.ts';

/**
 * Opens a link to the server of the queues, which the caller closes. Redis is connected to in the background, so that a
 * Redis that is down is not waited for. In PostgreSQL the schema of the queues is made first if it is missing.
 * @throws EngineError of PostgreSQL only: `unavailable` if it does not answer, `forbidden` if the role may not make the
 *   schema, `unprocessable` if a later BullMQ has made it or does not take its name
 */
export async function openQueueLink({ place, logger }: QueueLinkOptions, use: LinkUse): Promise<QueueLink> {
  if (place.kind === 'redis') return (await import('./redis-link.ts')).openRedisLink(place, logger, use);
  return (await import('./postgres-link.ts')).openPostgresLink(place, logger);
}
