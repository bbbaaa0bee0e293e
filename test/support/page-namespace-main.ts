import { once } from 'node:events';
import net from 'node:net';
import { createPageFetcher } from '../../src/engine/adapters/page-fetcher.ts';
import { DocumentError } from '../../src/engine/documents/document-error.ts';
import { startDnsServer, type DnsAnswer } from './dns-server.ts';
import { PRIVATE_NAMES, PUBLIC_ADDRESS, REFUSED_URLS } from './private-urls.ts';

/**
 * Runs in a network namespace in which every address leads to this process. It tries to fetch pages that must not be
 * fetched, with the real resolver and real sockets, and prints as JSON the outcomes and the requests that arrived at
 * each address.
 */

const NAME_SERVER = '127.0.0.53';
const PORTS = [22, 80, 443, 6379, 8080];

const ZONE: Readonly<Record<string, DnsAnswer>> = {
  'public.example': { addresses: [PUBLIC_ADDRESS] },
  'ten.example': { addresses: ['10.0.0.1'] },
  'loopback.example': { addresses: ['127.0.0.1', '::1'] },
  'metadata.example': { addresses: ['169.254.169.254'] },
  'six.example': { addresses: ['fd00::1'] },
  'mapped.example': { addresses: ['::ffff:10.0.0.1'] },
  'nat64.example': { addresses: ['64:ff9b::a00:1'] },
  'alias.example': { alias: 'internal.example', addresses: ['10.0.0.1'] },
  'mixed.example': { addresses: ['10.0.0.1', 'fd00::1', PUBLIC_ADDRESS, '192.168.0.1'] },
  'metadata.google.internal': { addresses: ['169.254.169.254'] },
  localhost: { addresses: ['127.0.0.1', '::1'] },
};

/** Requests that arrived at each address of this process, as text. */
const received = new Map<string, string[]>();

await startDnsServer({ address: NAME_SERVER, port: 53 }, (name, askedBefore) => {
  // The first answer is what a check would see, the next what a second look-up would connect to.
  if (name === 'rebinding.example') return { addresses: [askedBefore === 0 ? PUBLIC_ADDRESS : '127.0.0.1'] };
  if (name === 'flipping.example') return { addresses: [askedBefore % 2 === 0 ? '10.0.0.1' : PUBLIC_ADDRESS] };
  return ZONE[name];
});
for (const port of PORTS) await listen(port);

const control = ['10.0.0.1', '169.254.169.254', '127.0.0.1', '::1', 'fd00::1', '2002:7f00:1::', '203.0.113.10'];
for (const address of control) await knock(address);
const controlled = [...received.keys()].sort();
received.clear();

const fetcher = createPageFetcher({ timeoutMs: 20_000, maxBytes: 100_000 });
const outcomes: Record<string, string> = {};
for (const url of [
  ...REFUSED_URLS,
  ...PRIVATE_NAMES.map((name) => `http://${name}/`),
  ...Object.keys(ZONE).map((name) => `http://${name}/`),
  'http://rebinding.example/first',
  'http://rebinding.example/second',
  'http://flipping.example/first',
  'http://public.example/to?http://127.0.0.1/',
  'http://public.example/to?http://[::1]:80/',
  'http://public.example/to?http://169.254.169.254/latest/meta-data/',
  'http://public.example/to?http://metadata.example/',
  'http://public.example/to?http://alias.example/',
  'http://public.example/to?//10.0.0.1/',
  'http://public.example/to?file:///etc/passwd',
  'http://public.example/to?ftp://127.0.0.1/',
  'http://public.example/to?http://public.example:8080/',
  'http://public.example/to?http://user:secret@public.example/',
  'http://public.example/to?http://mixed.example/',
]) {
  outcomes[url] = await attempt(url);
}

process.stdout.write(JSON.stringify({ controlled, outcomes, received: Object.fromEntries(received) }));
process.exit();

async function attempt(url: string): Promise<string> {
  try {
    const file = await fetcher.fetch(url, null);
    return file === 'unchanged' ? file : Buffer.from(file.bytes).toString();
  } catch (error) {
    return error instanceof DocumentError ? error.code : String(error);
  }
}

async function listen(port: number): Promise<void> {
  const server = net.createServer((socket) => {
    const address = socket.localAddress!.replace(/^::ffff:/, '');
    const heard = received.get(address) ?? [];
    received.set(address, heard);
    socket.on('error', () => {});
    socket.on('data', (data) => {
      heard.push(data.toString('latin1'));
      socket.end(reply(data.toString('latin1')));
    });
  });
  server.listen(port, '::');
  await once(server, 'listening');
}

function reply(request: string): string {
  const target = /^GET \/to\?(\S+) /.exec(request)?.[1];
  const head = target === undefined ? '200 OK' : `302 Found\r\nLocation: ${target}`;
  return `HTTP/1.1 ${head}\r\nContent-Type: text/plain\r\nContent-Length: 4\r\nConnection: close\r\n\r\npage`;
}

async function knock(address: string): Promise<void> {
  const socket = net.connect(80, address);
  socket.write('knock');
  socket.resume();
  await once(socket, 'close');
}
