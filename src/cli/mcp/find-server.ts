import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { type Config, readConfig } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';

/** Finds, and if necessary starts, the server to which `cairn mcp` sends messages. */
export interface ServerFinder {
  /**
   * Returns the address of a server that answers: the named one, or else one on this machine, which is started if there
   * is none.
   * @throws CliError if the named server does not answer, or none can be started
   */
  find(): Promise<string>;
  /** Stops the server that this process started, if any, and waits until it has ended. */
  stop(): Promise<void>;
}

const LAUNCHER = path.resolve(import.meta.dirname, '../../../bin/cairn.cjs');
/** Longest wait for the reply that shows whether a Cairn server runs at an address (ms). */
const HEALTH_MS = 2_000;
/** Longest time in which a server must have started (ms). */
const START_MS = 30_000;
/**
 * Pause before the next attempt to start a server (ms). Meanwhile another process may have started one on the same data
 * folder.
 */
const RETRY_MS = 200;

/**
 * Makes a finder.
 * @param named address from `--url` or `CAIRN_URL`; undefined for a server on this machine
 */
export function createServerFinder(named: string | undefined, environment: NodeJS.ProcessEnv): ServerFinder {
  if (named !== undefined) {
    return {
      async find() {
        if (await isCairn(named)) return named;
        throw new CliError(`no Cairn server answers at ${named}: check --url or CAIRN_URL`);
      },
      stop: () => Promise.resolve(),
    };
  }
  return createLocalFinder(environment);
}

/**
 * Makes a finder of a server on this machine: the server at OM_PORT, or the one that another `cairn mcp` process
 * started for the same data folder. If neither answers, it starts one at a free port. Only one server may use a data
 * folder, so these processes share the first server, and find its address in a file beside the data.
 */
function createLocalFinder(environment: NodeJS.ProcessEnv): ServerFinder {
  let started: Started | undefined;
  async function findOrStart(): Promise<string> {
    const config = readConfig(environment);
    const giveUpAt = Date.now() + START_MS;
    for (;;) {
      for (const url of [started?.url, `http://127.0.0.1:${config.OM_PORT || 8080}`, addressLeftBy(config)]) {
        if (url !== undefined && (await isCairn(url))) return url;
      }
      await started?.stop();
      const start = await startServer(config, environment);
      if (!('problem' in start)) {
        started = start;
        fs.writeFileSync(config.paths.address, start.url, { mode: 0o600 });
        return start.url;
      }
      // Another bridge may be starting its server on the same data.
      if (!/another|uses/.test(start.problem) || Date.now() > giveUpAt) throw new CliError(start.problem);
      await pause(RETRY_MS);
    }
  }
  let finding: Promise<string> | undefined;
  return {
    find: () => (finding ??= findOrStart().finally(() => (finding = undefined))),
    async stop() {
      await finding?.catch(() => {});
      if (started === undefined) return;
      await started.stop();
      fs.rmSync(readConfig(environment).paths.address, { force: true });
    },
  };
}

async function isCairn(url: string): Promise<boolean> {
  try {
    const response = await fetch(new URL('health', url.endsWith('/') ? url : `${url}/`), {
      signal: AbortSignal.timeout(HEALTH_MS),
      redirect: 'error',
    });
    const health = (await response.json()) as { readonly ok?: unknown; readonly embedding?: unknown } | null;
    return health?.ok === true && health.embedding !== undefined;
  } catch {
    return false;
  }
}

function addressLeftBy({ paths }: Config): string | undefined {
  try {
    const url = fs.readFileSync(paths.address, 'utf8');
    return /^http:\/\/127\.0\.0\.1:\d{1,5}$/.test(url) ? url : undefined;
  } catch {
    return undefined;
  }
}

interface Started {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts the whole service as a process of its own, since its threads log to standard output, which belongs to the
 * protocol here. Its log goes to standard error. It ends with this process, even if that is killed.
 * @returns the server, or the reason why it did not start
 */
async function startServer(config: Config, environment: NodeJS.ProcessEnv): Promise<Started | { problem: string }> {
  const child = spawn(process.execPath, [LAUNCHER, 'serve'], {
    env: {
      ...environment,
      OM_HOST: '127.0.0.1',
      OM_PORT: '0',
      OM_API_PROCESSES: '1',
      // Its address is in a line of this level.
      OM_LOG_LEVEL: config.OM_LOG_LEVEL === 'debug' ? 'debug' : 'info',
      CAIRN_LAUNCHER_PID: String(process.pid),
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const exited = once(child, 'close');
  const isShown = config.OM_LOG_LEVEL === 'info' || config.OM_LOG_LEVEL === 'debug';
  const url = await readAddress(child, exited, isShown);
  child.channel?.unref();
  if (typeof url !== 'string') return url;
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await exited;
  };
  return { url, stop };
}

/**
 * Waits until a server logs the address at which it listens, or ends, or 30 s have passed; in the last two cases it is
 * killed.
 * @param isShown whether its log goes to standard error
 * @returns the address, or the reason why there is none
 */
async function readAddress(
  child: ChildProcess,
  exited: Promise<unknown>,
  isShown: boolean,
): Promise<string | { problem: string }> {
  const said: string[] = [];
  const ready = new Promise<string>((resolve) => {
    createInterface({ input: child.stdout! }).on('line', (line) => {
      if (isShown) process.stderr.write(`${line}\n`);
      const url = urlOf(line);
      if (url !== undefined) resolve(url);
    });
  });
  createInterface({ input: child.stderr! }).on('line', (line) => {
    process.stderr.write(`${line}\n`);
    said.push(line.replace(/^cairn: /, ''));
  });
  const ended = exited.then(() => ({ problem: `the server did not start: ${said.join('; ') || 'it said nothing'}` }));
  const late = pause(START_MS, undefined, { ref: false }).then(() => ({
    problem: `the server did not start within ${START_MS / 1000} s`,
  }));
  const outcome = await Promise.race([ready, ended, late]);
  if (typeof outcome !== 'string') child.kill('SIGKILL');
  return outcome;
}

function urlOf(line: string): string | undefined {
  try {
    const { msg, url } = JSON.parse(line) as { readonly msg?: unknown; readonly url?: unknown };
    return msg === 'ready' && typeof url === 'string' ? url : undefined;
  } catch {
    return undefined;
  }
}
