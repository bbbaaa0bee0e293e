import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { AggregatorRegistry } from 'prom-client';
import { type Engine, EngineError } from '../../engine/index.ts';
import type { MetricsSource } from '../../join-metrics.ts';
import { bind } from '../server.ts';
import type { RunningApi, StartApiOptions } from '../start.ts';
import { type Channel, createChannel, type Handover } from './channel.ts';

type Lead = Engine['lead'];

/** Pause before a process is started in place of one that lived for less than `SHORT_LIFE_MS`. */
const PAUSE_MS = 1_000;
const SHORT_LIFE_MS = 10_000;
/** Interval at which the processes are told whether Redis is reached, ms. */
const QUEUE_STATE_EVERY_MS = 1_000;

/** What is one for all processes, and is asked for here. */
type Shared = Omit<StartApiOptions, 'engine'>;

/** One process that serves HTTP. */
interface ApiProcess {
  readonly number: number;
  readonly child: ChildProcess;
  readonly channel: Channel;
  readonly metrics: MetricsSource;
  /** The last answer of `metrics`; an empty list before the first. */
  lastMetrics: object;
  /** Connections that were sent to the process and that it has not taken yet, by the number of their handover. */
  readonly handovers: Map<number, Socket>;
}

/**
 * Starts `OM_API_PROCESSES` processes that serve HTTP at one address. This process accepts connections and hands them
 * out in turn, commits what the others ask for (see `Lead`), and joins their metrics. A process that ends is replaced;
 * its clients see a closed connection, and what was acknowledged to them is on disk.
 *
 * Node's cluster module is not used: a connection on its way to a process that ends would stay open and unanswered.
 * @throws EngineError the errors of `bind`, and of `openEngine` in a process
 */
export async function startApiProcesses({ engine, ...shared }: StartApiOptions): Promise<RunningApi> {
  const { config, logger, metrics } = engine;
  const serving: ApiProcess[] = [];
  const departed = createDepartedMetrics();
  let isStopping = false;

  const start = async (number: number): Promise<void> => {
    const one = forkProcess(number, engine.lead, shared);
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
    if (state.mode === 'redis') for (const { channel } of serving) channel.tell('queueState', state);
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

function forkProcess(number: number, lead: Lead, shared: Shared): ApiProcess {
  const child = fork(`${import.meta.dirname}/api-process${import.meta.filename.slice(-3)}`, [], {
    serialization: 'advanced',
  });
  const handovers = new Map<number, Socket>();
  const channel = createChannel(child, {
    ...answersFor(lead),
    ...shared,
    taken(id: number) {
      // The other process has the connection; here only this process's copy of it is closed.
      handovers.get(id)?.destroy();
      handovers.delete(id);
    },
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
    for (const socket of handovers.values()) socket.destroy();
  });
  return one;
}

/** What an API process may ask of this one. */
function answersFor({ transport, dispatcher }: Lead) {
  return {
    commit: (groups: Parameters<Lead['transport']['commit']>[0]) => transport.commit(groups),
    evict: (path: string) => transport.evict(path),
    dispatch: ({ path, step }: { path: string; step: Parameters<Lead['dispatcher']['dispatch']>[1] }) =>
      dispatcher.dispatch(path, step),
  };
}

/** Makes the function that hands each new connection to the next process that serves. */
function createHandOut(serving: readonly ApiProcess[]): (socket: Socket) => void {
  let count = 0;
  return (socket) => {
    const id = ++count;
    const next = serving[id % serving.length];
    socket.on('error', () => {}); // A client that leaves early has nobody to tell.
    // All may have ended at once. The client is told by the closed connection.
    if (next === undefined) return void socket.destroy();
    next.handovers.set(id, socket);
    // Kept open here until it is taken: Node would lose it if the other process ended on the way.
    next.child.send({ kind: 'connection', id } satisfies Handover, socket, { keepOpen: true }, (error) => {
      if (error !== null) socket.destroy();
    });
  };
}

/** Asks a process to answer what is in flight and end, and waits until it has. */
async function stopProcess({ child, channel }: ApiProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  await channel.ask('stop').catch(() => {}); // It has ended meanwhile.
  await ended;
}

/**
 * Keeps what processes had counted when they ended, as a source of metrics. Without it a counter of the service would
 * fall with each of them.
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
