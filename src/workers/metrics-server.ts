import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { isLoopback, type Config } from '../engine/config.ts';
import { isFromHere, readCredential } from '../engine/control/credential.ts';
import { openControlDatabase } from '../engine/control/open-control-database.ts';
import { EngineError } from '../engine/errors.ts';
import { systemClock } from '../engine/ports.ts';
import { joinMetrics } from './background-work.ts';

export interface MetricsServer {
  readonly url: string;
  stop(): Promise<void>;
}

export interface MetricsServerOptions {
  readonly config: Config;
  readonly own: Registry;
  /** Those of the process's other thread. */
  readonly theirs?: (() => Promise<object>) | undefined;
}

const REQUEST_TIMEOUT_MS = 10_000;

/**
 * `GET /metrics` of a worker process, at OM_HOST and OM_WORKER_METRICS_PORT, for whoever holds any key. As with the API, without a key
 * only this machine is served.
 * @throws EngineError `forbidden` if no key is configured and OM_HOST is not this machine's own; `unavailable` if the address cannot be had
 */
export async function serveMetrics({ config, own, theirs }: MetricsServerOptions): Promise<MetricsServer> {
  const { OM_HOST: host, OM_WORKER_METRICS_PORT: port } = config;
  const control = openControlDatabase(config, systemClock);
  if (control.isOpen() && !isLoopback(host)) {
    control.close();
    throw new EngineError(
      'forbidden',
      `no key is configured, so metrics are not served at OM_HOST=${host}: set OM_API_KEY, or listen on 127.0.0.1`,
    );
  }
  const answer = async (request: IncomingMessage): Promise<{ status: number; text: string }> => {
    const status = statusOf(request);
    return { status, text: status === 200 ? await joinMetrics(own, theirs?.() ?? Promise.resolve([])) : `${status}\n` };
  };
  const statusOf = (request: IncomingMessage): number => {
    if (control.isOpen() ? !isFromHere(request) : !isKnown(request)) return control.isOpen() ? 403 : 401;
    if (request.url?.split('?')[0] !== '/metrics') return 404;
    return request.method === 'GET' || request.method === 'HEAD' ? 200 : 405;
  };
  const isKnown = (request: IncomingMessage): boolean => {
    try {
      const secret = readCredential(request);
      return secret !== undefined && control.authenticate(secret) !== undefined;
    } catch {
      return false; // Two keys, or one that cannot be read.
    }
  };
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    void answer(request).then(
      ({ status, text }) =>
        response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(text),
      () => response.destroy(),
    );
  });
  try {
    server.listen({ host: host.replace(/^\[(.*)\]$/, '$1'), port });
    await once(server, 'listening');
  } catch (error) {
    control.close();
    throw new EngineError('unavailable', `cannot listen on ${host}:${port}`, { cause: error });
  }
  const { address, family, port: taken } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}/metrics`,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      control.close();
    },
  };
}
