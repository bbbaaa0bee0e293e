import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { AggregatorRegistry } from 'prom-client';
import { type Engine, EngineError } from '../../engine/index.ts';
import type { MetricsSource } from '../../join-metrics.ts';
import { bind } from '../server.ts';
import type { RunningApi, StartApiOptions } from '../start.ts';
import { type Channel, createChannel } from './channel.ts';
import { createHandovers, type Handovers } from './handovers.ts';

type Lead = Engine['lead'];

/**
 * Pause before a new process replaces one that lived for less than `SHORT_LIFE_MS`, and between failed starts (ms). A
 * process that lived longer is replaced at once.
 */
const PAUSE_MS = 1_000;
const SHORT_LIFE_MS = 10_000;
/** Interval at which the API processes receive whether the queues can be reached (ms). */
const QUEUE_STATE_EVERY_MS = 1_000;

/**
 * Functions of this process that read the metrics and the activity of the whole service; the API processes call them.
 */
type Shared = Omit<StartApiOptions, 'engine'>;

/** One child process that serves HTTP. */
interface ApiProcess {
  readonly number: number;
  readonly child: ChildProcess;
  readonly channel: Channel;
  readonly metrics: MetricsSource;
  /**
   * The latest metrics that the process reported, when `metrics` was last called; an empty list before its first
   * report.
   */
  lastMetrics: object;
  /** Passes connections to the process. */
  readonly handovers: Handovers;
}

/**
 * Starts `OM_API_PROCESSES` child processes that serve HTTP at one address. This process accepts connections and hands
 * them out in turn, makes the commits for the children (see `Lead`), and joins their metrics. A process that ends is
 * replaced; its clients see a closed connection, and what was acknowledged to them is on disk. Node's cluster module is
 * not used: a connection that is being handed to a process that ends would stay open and unanswered.
 * @throws EngineError `forbidden` or `unavailable` if the address cannot be bound (`bind`); the error of `openEngine`
 *   in a child
 */
export async function startApiProcesses({ engine, ...shared }: StartApiOptions): Promise<RunningApi> {
  const { config, logger, metrics } = engine;
  const serving: ApiProcess[] = [];
  const mostConnections = Math.ceil(config.OM_MAX_CONNECTIONS / config.OM_API_PROCESSES);
  const departed = createDepartedMetrics();
  let isStopping = false;

  const start = async (number: number): Promise<void> => {
    const one = forkProcess(number, { lead: engine.lead, shared, mostConnections });
    const startedAt = performance.now();
    one.child.once('exit', (code, signal) => {
      const place = serving.indexOf(one);
      if (place >= 0) serving.splice(place, 1);
      departed.add(one.lastMetrics);
      if (isStopping || place < 0) return;
      metrics.apiProcessEnds.inc();
      logger.error({ number, code, signal }, 'api_process_ended');
      setTimeout(() => void replace(number), performance.now() - startedAt < SHORT_LIFE_MS ? PAUSE_MS : 0);
    });
    try {
      one.channel.tell('queueState', engine.queueState());
      await one.channel.ask('start', { config, number });
    } catch (error) {
      one.child.kill('SIGKILL');
      throw error;
    }
    serving.push(one);
    logger.info({ number, pid: one.child.pid }, 'api_process_ready');
  };
  const replace = async (number: number): Promise<void> => {
    while (!isStopping) {
      try {
        return await start(number);
      } catch (error) {
        logger.error({ number, error: (error as Error).message }, 'api_process_failed');
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  };
  const tellState = setInterval(() => {
    const state = engine.queueState();
    if (state.mode !== 'embedded') for (const { channel } of serving) channel.tell('queueState', state);
  }, QUEUE_STATE_EVERY_MS);
  const server = createServer({ pauseOnConnect: true }, createHandOut(serving));
  const stop = async () => {
    isStopping = true;
    clearInterval(tellState);
    if (server.listening) server.close();
    await Promise.all(serving.map(stopProcess));
  };
  try {
    // The address first: where it is taken, no process need be started.
    const { url } = await bind(server, engine);
    await Promise.all(Array.from({ length: config.OM_API_PROCESSES }, (_, index) => start(index + 1)));
    return { url, metrics: () => [...serving.map((one) => one.metrics), departed.read], stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Flag of V8 that bin/cairn.cjs sets for a main thread, and the one for its other threads. */
const [MAIN_SEMI_SPACE, SEMI_SPACE] = ['--max-semi-space-size=8', '--max-semi-space-size=2'];

interface ForkOptions {
  readonly lead: Lead;
  readonly shared: Shared;
  /** Greatest number of connections that may wait until the process takes them. */
  readonly mostConnections: number;
}

/**
 * Starts an API process. Each of them serves a part of the requests, so all of its threads have a small young
 * generation.
 */
function forkProcess(number: number, { lead, shared, mostConnections }: ForkOptions): ApiProcess {
  const child = fork(`${import.meta.dirname}/api-process${import.meta.filename.slice(-3)}`, [], {
    serialization: 'advanced',
    execArgv: process.execArgv.map((flag) => (flag === MAIN_SEMI_SPACE ? SEMI_SPACE : flag)),
  });
  const handovers = createHandovers({
    // Kept open here until it is taken: Node would lose it if the other process ended on the way.
    send: (message, socket, onSent) => child.send(message, socket, { keepOpen: true }, onSent),
    most: mostConnections,
  });
  const channel = createChannel(child, {
    ...answersFor(lead),
    ...shared,
    taken: (id: number) => handovers.taken(id),
  });
  const one: ApiProcess = {
    number,
    child,
    channel,
    handovers,
    lastMetrics: [],
    metrics: async () => (one.lastMetrics = await channel.ask<object>('metrics')),
  };
  child.once('exit', () => {
    channel.fail(new EngineError('unavailable', `API process ${number} ended`));
    handovers.close();
  });
  return one;
}

/**
 * Makes the functions of this process that a child process may call: commit writes, close (evict) a tenant's file, and
 * dispatch the jobs of a tenant.
 */
function answersFor({ transport, dispatcher }: Lead) {
  return {
    commit: (group: Parameters<Lead['transport']['commit']>[0]) => transport.commit(group),
    evict: (path: string) => transport.evict(path),
    dispatch: ({ path, step }: { path: string; step: Parameters<Lead['dispatcher']['dispatch']>[1] }) =>
      dispatcher.dispatch(path, step),
  };
}

/**
 * Makes the function that passes each new connection to one of the child processes, in rotation. If no child is
 * serving, it closes the connection.
 */
function createHandOut(serving: readonly ApiProcess[]): (socket: Socket) => void {
  let count = 0;
  return (socket) => {
    const next = serving[++count % serving.length];
    socket.on('error', () => {}); // A client that leaves early has nobody to tell.
    // All may have ended at once. The client is told by the closed connection.
    if (next === undefined) return void socket.destroy();
    next.handovers.pass(socket);
  };
}

/** Tells a child to answer the requests in flight and end, and waits until it has ended. */
async function stopProcess({ child, channel }: ApiProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  await channel.ask('stop').catch(() => {}); // It has ended meanwhile.
  await ended;
}

/**
 * Makes a source of metrics that sums the last counters and histograms of the child processes that have ended, as they
 * reported them at the last request for metrics. Without it, the service's counters would fall whenever a process ends.
 * Gauges are left out.
 */
function createDepartedMetrics(): { add(metrics: object): void; readonly read: MetricsSource } {
  let sum: Promise<object> = Promise.resolve([]);
  return {
    add(metrics) {
      const counters = (metrics as readonly { readonly type: string }[]).filter(({ type }) => type !== 'gauge');
      sum = sum.then(async (before) => AggregatorRegistry.aggregate([before, counters]).getMetricsAsJSON());
    },
    read: () => sum,
  };
}
