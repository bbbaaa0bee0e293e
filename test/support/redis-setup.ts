import type { TestProject } from 'vitest/node';
import { startRedisServer } from './redis.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of a Redis; null if there is none. Tests that need one are then skipped. */
    redisUrl: string | null;
  }
}

/**
 * Finds a Redis for the test run: `REDIS_URL`, or else one in a Docker container, or else a `redis-server` on the PATH.
 * It prints which one it uses. If there is none, it fails with `REQUIRE_REDIS=1`.
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
