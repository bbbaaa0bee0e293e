import net from 'node:net';

/** Connections that have sent all of a request but the last byte of its body. */
export interface HalfSent extends Disposable {
  /** Answers that came so far, each as its status and the value of its header `retry-after`. */
  readonly answers: readonly { readonly status: number; readonly retryAfter: string | undefined }[];
}

/**
 * Sends a request with a body of `bytes` bytes over many connections, and of each body holds back the last byte.
 * @param head request line and headers, without `host` and `content-length`; each line ends with `\r\n`
 */
export async function sendHalf(
  port: number,
  { connections, head, bytes }: { readonly connections: number; readonly head: string; readonly bytes: number },
): Promise<HalfSent> {
  const answers: { status: number; retryAfter: string | undefined }[] = [];
  const body = Buffer.alloc(bytes - 1, ' ');
  const sockets = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = net.connect({ port, host: '127.0.0.1' });
      const { promise, resolve } = Promise.withResolvers<void>();
      socket.on('error', () => {});
      socket.once('connect', resolve).once('close', resolve);
      socket.once('data', (answer) => {
        const text = answer.toString('latin1');
        answers.push({ status: Number(text.slice(9, 12)), retryAfter: /^retry-after: (.*)\r$/im.exec(text)?.[1] });
      });
      await promise;
      socket.write(`${head}host: 127.0.0.1\r\ncontent-length: ${bytes}\r\n\r\n`);
      socket.write(body);
      return socket;
    }),
  );
  return { answers, [Symbol.dispose]: () => sockets.forEach((socket) => socket.destroy()) };
}
