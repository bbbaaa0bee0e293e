import net from 'node:net';

/** Connections that have sent all of a request but the last bytes of its body. */
export interface HalfSent extends Disposable {
  /** Answers that came so far, each as its status and the value of its header `retry-after`. */
  readonly answers: readonly { readonly status: number; readonly retryAfter: string | undefined }[];
  /** Sends the last bytes of all bodies together. */
  sendLast(): void;
}

/**
 * Sends a request with a body over many connections, and of each body holds back the last bytes.
 * @param bytes length of the body, which is spaces
 * @param body the body, in place of `bytes`
 * @param last number of bytes that are held back; by default one
 * @param head request line and headers, without `host` and `content-length`; each line ends with `\r\n`
 */
export async function sendHalf(
  port: number,
  {
    connections,
    head,
    last = 1,
    ...sent
  }: { readonly connections: number; readonly head: string; readonly last?: number } & (
    { readonly bytes: number } | { readonly body: Buffer }
  ),
): Promise<HalfSent> {
  const answers: { status: number; retryAfter: string | undefined }[] = [];
  const body = 'body' in sent ? sent.body : Buffer.alloc(sent.bytes, ' ');
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
      socket.write(`${head}host: 127.0.0.1\r\ncontent-length: ${body.length}\r\n\r\n`);
      socket.write(body.subarray(0, -last));
      return socket;
    }),
  );
  const sendLast = () => sockets.forEach((socket) => socket.write(body.subarray(-last)));
  return { answers, sendLast, [Symbol.dispose]: () => sockets.forEach((socket) => socket.destroy()) };
}
