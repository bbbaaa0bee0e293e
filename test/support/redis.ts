import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';

/** A Redis server for one test, which may flush, stop and kill it. */
export interface RedisServer {
  readonly url: string;
  readonly pid: number;
  /** Opens a connection for commands of the test itself. */
  connect(): Redis;
  signal(signal: NodeJS.Signals): void;
  /** Ends the server with SIGKILL. The data that it had written is kept for a restart. */
  kill(): Promise<void>;
  /**
   * Ends the server with SIGKILL and starts it again on the same port, with or without the data that it had written.
   */
  restart(options: { readonly keepData: boolean; readonly downMs?: number }): Promise<void>;
  stop(): Promise<void>;
}

export interface RedisServerOptions {
  /** Further options for `redis-server`, such as `['--maxmemory', '3mb']`. */
  readonly options?: readonly string[];
  /** If true, the server is not started before `restart` is called. */
  readonly down?: boolean;
}

const READY_TRIES = 100;

/** Tells whether tests can start a Redis that they may kill. The Redis of `REDIS_URL` must not be killed. */
export function canStartRedis(): boolean {
  return isOnPath('redis-server');
}

/**
 * Starts a Redis server.
 * @returns undefined if there is no `redis-server` on the PATH
 */
export async function startRedisServer({ options = [], down = false }: RedisServerOptions = {}): Promise<
  RedisServer | undefined
> {
  if (!canStartRedis()) return undefined;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-redis-'));
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;

  const start = async () => {
    child = spawn(
      'redis-server',
      [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--dir',
        folder,
        '--save',
        '',
        '--appendonly',
        'yes',
        '--maxmemory-policy',
        'noeviction',
        ...options,
      ],
      { stdio: 'ignore' },
    );
    await untilReady(url);
  };
  const kill = async () => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGCONT');
    child.kill('SIGKILL');
    await ended;
  };
  if (!down) await start();

  return {
    url,
    get pid() {
      return child?.pid ?? 0;
    },
    connect: () => new Redis(url, { maxRetriesPerRequest: null }),
    signal: (signal) => void child?.kill(signal),
    kill,
    async restart({ keepData, downMs = 0 }) {
      await kill();
      if (!keepData) {
        for (const name of fs.readdirSync(folder)) fs.rmSync(path.join(folder, name), { recursive: true });
      }
      await pause(downMs);
      await start();
    },
    async stop() {
      await kill();
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function untilReady(url: string): Promise<void> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => {});
  try {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await redis.connect();
        await redis.ping();
        return;
      } catch (error) {
        if (attempt === READY_TRIES) throw error;
        await pause(20);
      }
    }
  } finally {
    redis.disconnect();
  }
}

function isOnPath(name: string): boolean {
  return (process.env.PATH ?? '').split(path.delimiter).some((folder) => fs.existsSync(path.join(folder, name)));
}
