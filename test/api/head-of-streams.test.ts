import net from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

test('HEAD on a stream of events ends at once, and the next request of the connection is answered', async () => {
  const api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
  onTestFinished(() => api.stop());
  const text = { content_type: 'text/plain', text: 'The harbour is closed.' };
  const { document_id: document } = (await api.request('POST', '/memory/ingest', { body: text })).body;
  const { job_id: job } = await api.add({ content: 'The pier is open.' });
  for (const path of [`/documents/${document as string}/events`, `/jobs/${job}/events`, '/events']) {
    const socket = net.connect({ port: api.port, host: '127.0.0.1' });
    onTestFinished(() => void socket.destroy());
    const headers = `Host: 127.0.0.1\r\nAuthorization: Bearer ${ADMIN_KEY}\r\nAccept: text/event-stream`;
    socket.write(`HEAD ${path} HTTP/1.1\r\n${headers}\r\n\r\n`);
    socket.write(`GET /jobs/${job} HTTP/1.1\r\n${headers}\r\nConnection: close\r\n\r\n`);
    const [head, reply] = (await textOf(socket)).split('\r\n\r\nHTTP/1.1 ');
    expect(head, path).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*text\/event-stream/);
    expect(reply, path).toContain(job);
  }
});
