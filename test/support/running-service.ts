import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { settingsSchema } from '../../src/engine/config.ts';
import type { JobState } from '../../src/engine/types.ts';
import { problemOfReply } from './check-reply.ts';
import { leftovers } from './leftovers.ts';

const ENTRY = path.resolve(import.meta.dirname, '../../bin/cairn.cjs');
const POLL_MS = 50;

/** The real service as `npm start` starts it: a separate process, which a test can kill. */
export interface ServiceProcess {
  readonly pid: number;
  /** Address of the service, once it is ready. Rejects with its output if it ends before. */
  readonly ready: Promise<string>;
  readonly exited: Promise<Exit>;
  /** How the process ended, with its output; undefined while it runs. */
  readonly obituary: string | undefined;
  /** All log lines so far. */
  readonly log: readonly LogLine[];
  /** Sends a signal, if the process still runs. */
  signal(signal: NodeJS.Signals): void;
  /** Sends a signal, and waits until the process has ended. */
  end(signal: NodeJS.Signals): Promise<Exit>;
  request(method: string, path: string, options?: ServiceRequest): Promise<ServiceReply>;
  /** Returns the first log line with this event, and waits for it if there is none yet. */
  logged(event: string): Promise<LogLine>;
  /**
   * Waits until no job is queued, active or waiting for another attempt.
   * @returns the number of jobs in each state
   */
  idle(headers?: Readonly<Record<string, string>>): Promise<Readonly<Record<JobState, number>>>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface LogLine {
  readonly msg: string;
  readonly level: number;
  readonly [field: string]: unknown;
}

export interface ServiceRequest {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ServiceReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: ServiceReplyBody;
}

/** Fields that replies of various routes have; each reply has only some of them. A body that is not JSON has none. */
interface ServiceReplyBody {
  readonly [field: string]: unknown;
  readonly id: string;
  readonly job_id: string;
  readonly counts: Readonly<Record<JobState, number>>;
  readonly matches: readonly { readonly content: string }[];
  readonly items: readonly {
    readonly id: string;
    readonly content: string;
    readonly memory_id: string;
    readonly attempts: number;
  }[];
}

export interface ServiceOptions {
  /** Folder of the data. A second start on the same folder continues with its data. */
  readonly folder: string;
  readonly settings?: Readonly<Record<string, string>>;
  /** What the process runs; by default everything in one process. A worker serves no HTTP, so its address is ''. */
  readonly command?: 'serve' | 'api' | 'worker';
  readonly arguments?: readonly string[];
}

/** Starts the service and waits until it is ready. */
export async function startServiceProcess(options: ServiceOptions): Promise<ServiceProcess> {
  const service = spawnService(options);
  await service.ready;
  return service;
}

export function databaseFile(folder: string): string {
  return path.join(folder, 'cairn.sqlite');
}

/**
 * Starts the service on a free port and returns at once, so that a test can kill it while it starts. If it still runs
 * when the test file has ended, it is killed.
 */
export function spawnService({
  folder,
  settings = {},
  command = 'serve',
  arguments: more = [],
}: ServiceOptions): ServiceProcess {
  const child = spawn(process.execPath, [ENTRY, command, ...more], {
    env: {
      PATH: process.env.PATH,
      // Every setting is given, so that neither this environment nor a developer's .env reaches the service.
      ...Object.fromEntries(Object.keys(settingsSchema.shape).map((name) => [name, ''])),
      OM_DB_PATH: databaseFile(folder),
      OM_PORT: '0',
      OM_VEC_DIM: '256',
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log: LogLine[] = [];
  const stderr: string[] = [];
  let obituary: string | undefined;
  const ready = Promise.withResolvers<string>();
  const waiting: { event: string; resolve: (line: LogLine) => void }[] = [];
  ready.promise.catch(() => {}); // Whoever needs it awaits it.

  createInterface({ input: child.stdout }).on('line', (text) => {
    const line = JSON.parse(text) as LogLine;
    log.push(line);
    if (line.msg === 'ready') ready.resolve(line['url'] as string);
    if (line.msg === 'worker_ready') ready.resolve('');
    for (const entry of waiting.filter(({ event }) => event === line.msg)) entry.resolve(line);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => stderr.push(text));
  // The pipes close when every process behind them is gone.
  const exited = once(child, 'close').then(([code, signal]) => {
    leftovers.processes.delete(service);
    obituary = [`the service ended: ${code ?? signal}`, ...stderr, ...log.map((line) => JSON.stringify(line))].join(
      '\n',
    );
    ready.reject(new Error(obituary));
    return { code, signal };
  });

  const service: ServiceProcess = {
    pid: child.pid as number,
    ready: ready.promise,
    exited,
    get obituary() {
      return obituary;
    },
    log,
    signal: (signal) => void child.kill(signal),
    end(signal) {
      child.kill(signal);
      return exited;
    },
    async request(method, route, { body: content, headers = {} } = {}) {
      const response = await fetch((await ready.promise) + route, {
        method,
        // A kept connection may be closed by the server at the moment of the next request; a POST is not sent twice.
        headers: {
          connection: 'close',
          ...(content === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(content === undefined ? {} : { body: JSON.stringify(content) }),
      });
      const text = await response.text();
      const contentType = response.headers.get('content-type') ?? '';
      const problem = problemOfReply({ method, target: route, status: response.status, contentType, text });
      if (problem !== undefined) throw new Error(problem);
      const body = (contentType.includes('json') ? JSON.parse(text) : {}) as ServiceReplyBody;
      return { status: response.status, headers: response.headers, text, body };
    },
    async logged(event) {
      return log.find((line) => line.msg === event) ?? new Promise((resolve) => waiting.push({ event, resolve }));
    },
    async idle(headers = {}) {
      for (;;) {
        const { counts } = (await service.request('GET', '/jobs?l=1', { headers })).body;
        if (counts.queued + counts.active + counts.failed === 0) return counts;
        await pause(POLL_MS);
      }
    },
  };
  leftovers.processes.add(service);
  return service;
}
