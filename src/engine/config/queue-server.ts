import type { Settings } from './settings.ts';

/**
 * Returns the server that carries jobs to the workers: Redis with `REDIS_URL`, else PostgreSQL with `OM_DATABASE_URL`.
 * It is null without both: workers then find their jobs in the tenants' files.
 */
export function queueServerOf({
  REDIS_URL: redis,
  OM_DATABASE_URL: database,
}: Pick<Settings, 'REDIS_URL' | 'OM_DATABASE_URL'>): 'redis' | 'postgres' | null {
  if (redis !== undefined) return 'redis';
  return database === undefined ? null : 'postgres';
}
