import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** An HTTP server on this machine that answers as a test says. */
export interface FakeServer extends AsyncDisposable {
  readonly url: string;
  /** Every request so far. */
  readonly requests: readonly ReceivedRequest[];
}

/** Starts an HTTP server that passes each request to `answer`, which may also leave the reply unfinished. */
export async function startFakeServer(
  answer: (response: ServerResponse, request: ReceivedRequest) => void,
): Promise<FakeServer> {
  const requests: ReceivedRequest[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { method = '', url: path = '', headers } = request;
      const received = { method, path, headers, text: Buffer.concat(chunks).toString('utf8') };
      requests.push(received);
      response.on('error', () => {});
      answer(response, received);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
