/**
 * A keep-alive HTTP/1.1 client on one bare socket, one request at a time. A load generator that shares two cores with
 * the server must take little CPU time itself. It understands only replies with `content-length`.
 */
import net from 'node:net';

export interface RawReply {
  readonly status: number;
  readonly body: string;
}

export class RawClient {
  readonly #socket: net.Socket;
  #received = '';
  #waiting: { resolve: (reply: RawReply) => void; reject: (error: Error) => void } | undefined;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#socket = net.connect({ host: hostname, port: Number(port), noDelay: true });
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (data: string) => this.#take(data));
    const fail = (error?: Error) => {
      this.#waiting?.reject(error ?? new Error('the connection was closed'));
      this.#waiting = undefined;
    };
    this.#socket.on('error', fail);
    this.#socket.on('close', () => fail());
  }

  request(method: string, path: string, body = '', headers: Readonly<Record<string, string>> = {}): Promise<RawReply> {
    const lines = Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('');
    this.#socket.write(
      `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n${lines}` +
        `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    return new Promise((resolve, reject) => (this.#waiting = { resolve, reject }));
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(data: string): void {
    this.#received += data;
    const end = this.#received.indexOf('\r\n\r\n');
    if (end < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#received.slice(0, end))?.[1] ?? 0);
    if (this.#received.length < end + 4 + length) return;
    const status = Number(this.#received.slice(9, 12));
    const body = Buffer.from(this.#received.slice(end + 4, end + 4 + length), 'latin1').toString('utf8');
    this.#received = this.#received.slice(end + 4 + length);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve({ status, body });
  }
}
