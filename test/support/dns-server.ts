import dgram from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';

/**
 * Addresses that the server answers for a name. Addresses of the family that was not requested (IPv4 or IPv6) are left
 * out.
 */
export interface DnsAnswer {
  readonly alias?: string;
  readonly addresses: readonly string[];
}

/**
 * Starts a DNS server over UDP for the names of a test.
 * @param answerTo returns the answer for a name in lower case; undefined if the name does not exist. `askedBefore` is
 *   the number of earlier requests for this name and address family.
 */
export async function startDnsServer(
  { address, port }: { readonly address: string; readonly port: number },
  answerTo: (name: string, askedBefore: number) => DnsAnswer | undefined,
): Promise<{ close(): void }> {
  const asked = new Map<string, number>();
  const socket = dgram.createSocket('udp4');
  socket.on('message', (query, sender) => {
    const question = readQuestion(query);
    const key = `${question.type} ${question.name}`;
    const askedBefore = asked.get(key) ?? 0;
    asked.set(key, askedBefore + 1);
    socket.send(encodeReply(query, question, answerTo(question.name, askedBefore)), sender.port, sender.address);
  });
  socket.bind(port, address);
  await once(socket, 'listening');
  return { close: () => void socket.close() };
}

interface Question {
  readonly name: string;
  readonly type: number;
  readonly end: number;
}

const HEADER_BYTES = 12;
const TYPES = { A: 1, CNAME: 5, AAAA: 28 };
const NO_SUCH_NAME = 3;

function readQuestion(query: Buffer): Question {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function encodeReply(query: Buffer, { type, end, name }: Question, answer: DnsAnswer | undefined): Buffer {
  const alias = answer?.alias === undefined ? [] : [record(name, TYPES.CNAME, encodeName(answer.alias))];
  const family = type === TYPES.A ? 4 : type === TYPES.AAAA ? 6 : 0;
  const addresses = (answer?.addresses ?? []).filter((address) => net.isIP(address) === family);
  const records = [
    ...alias,
    ...addresses.map((address) => record(answer?.alias ?? name, type, encodeAddress(address))),
  ];
  const header = Buffer.alloc(HEADER_BYTES);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8580 | (answer === undefined ? NO_SUCH_NAME : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records.length, 6);
  return Buffer.concat([header, query.subarray(HEADER_BYTES, end), ...records]);
}

/** Makes a resource record with a time to live of 0 s, so that no resolver caches it. */
function record(name: string, type: number, data: Buffer): Buffer {
  const fields = Buffer.alloc(10);
  fields.writeUInt16BE(type, 0);
  fields.writeUInt16BE(1, 2);
  fields.writeUInt16BE(data.length, 8);
  return Buffer.concat([encodeName(name), fields, data]);
}

function encodeName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function encodeAddress(address: string): Buffer {
  if (net.isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail = ''] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::');
  const parse = (part: string) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)));
  const before = parse(head);
  const after = parse(tail);
  const groups = [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}
