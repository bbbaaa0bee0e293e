import { createServer, type IncomingHttpHeaders } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';

/** A webhook message as it arrived. */
interface ReceivedMessage {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: {
    readonly type: string;
    readonly timestamp: string;
    readonly data: Readonly<Record<string, string | number | null>>;
  };
}

/** A server on this machine that receives webhooks. */
export interface WebhookReceiver extends AsyncDisposable {
  readonly url: string;
  readonly messages: ReceivedMessage[];
  /**
   * HTTP statuses of the next replies, which are taken from the start of the list. If it is empty, the reply is 204.
   */
  readonly answers: number[];
  /** Waits until `count` messages have arrived, and returns them. */
  untilReceived(count: number): Promise<ReceivedMessage[]>;
}

export async function startReceiver(): Promise<WebhookReceiver> {
  const messages: ReceivedMessage[] = [];
  const answers: number[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const text = Buffer.concat(chunks).toString('utf8');
      const body = JSON.parse(text) as ReceivedMessage['body'];
      messages.push({ id: String(request.headers['webhook-id']), headers: request.headers, text, body });
      response.writeHead(answers.shift() ?? 204, { location: 'http://127.0.0.1:1/' }).end();
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    messages,
    answers,
    async untilReceived(count) {
      await expect.poll(() => messages.length, { interval: 20 }).toBeGreaterThanOrEqual(count);
      return messages;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
