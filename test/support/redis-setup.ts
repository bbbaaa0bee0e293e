import type { TestProject } from 'vitest/node';
import { startRedisServer } from './redis.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** null where no Redis can be found; tests that need one are skipped then. */
    redisUrl: string | null;
  }
}

/**
 * Finds a Redis for the run: `REDIS_URL`, else one in a container where Docker answers, else a `redis-server` on the
 * PATH. Says which, and without any fails where `REQUIRE_REDIS=1`.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const found = (await fromEnvironment()) ?? (await fromContainer()) ?? (await fromPath());
  project.provide('redisUrl', found?.url ?? null);
  if (found === undefined) {
    if (process.env.REQUIRE_REDIS === '1')
      throw new Error('REQUIRE_REDIS=1, but there is no Redis: set REDIS_URL or install redis-server');
    console.warn('no Redis: tests of the queues are skipped (set REDIS_URL, or install redis-server or Docker)');
  }
  return async () => {
    await found?.stop();
  };
}

interface FoundRedis {
  readonly url: string;
  stop(): Promise<unknown>;
}

async function fromEnvironment(): Promise<FoundRedis | undefined> {
  const url = process.env.REDIS_URL;
  return url === undefined || url === '' ? undefined : { url, stop: async () => {} };
}

async function fromContainer(): Promise<FoundRedis | undefined> {
  const { GenericContainer, getContainerRuntimeClient } = await import('testcontainers');
  try {
    await getContainerRuntimeClient();
  } catch {
    return undefined; // No engine answers.
  }
  const container = await new GenericContainer('redis:8-alpine')
    .withCommand(['redis-server', '--appendonly', 'yes', '--maxmemory-policy', 'noeviction'])
    .withExposedPorts(6379)
    .start();
  return { url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`, stop: () => container.stop() };
}

async function fromPath(): Promise<FoundRedis | undefined> {
  const server = await startRedisServer();
  return server && { url: server.url, stop: () => server.stop() };
}
