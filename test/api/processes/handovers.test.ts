import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createHandovers } from '../../../src/api/processes/handovers.ts';

const connection = (remoteAddress: string) => {
  const socket = { remoteAddress, isClosed: false, destroy: () => void (socket.isClosed = true) };
  return socket;
};
type Connection = ReturnType<typeof connection>;

/** Makes handovers to a process that takes nothing by itself, and notes what was sent to it. */
function start(most: number) {
  const sent: { readonly id: number; readonly socket: Connection; fail(): void }[] = [];
  const handovers = createHandovers({
    most,
    send: ({ id }, socket, onSent) =>
      void sent.push({ id, socket: socket as unknown as Connection, fail: () => onSent(new Error('it has ended')) }),
  });
  const pass = (address: string, count = 1) =>
    Array.from({ length: count }, () => {
      const socket = connection(address);
      handovers.pass(socket as unknown as Socket);
      return socket;
    });
  return { sent, handovers, pass, addresses: () => sent.map(({ socket }) => socket.remoteAddress) };
}

test('few connections are on their way to a process, and networks whose connections wait take turns', () => {
  const { sent, handovers, pass, addresses } = start(100);
  pass('198.51.100.1', 50);
  pass('198.51.100.2', 2);
  expect(sent).toHaveLength(8);
  for (const { id, socket } of [...sent]) {
    handovers.taken(id);
    expect(socket.isClosed).toBe(true);
  }
  expect(sent).toHaveLength(16);
  expect(addresses().slice(8, 12)).toEqual(['198.51.100.1', '198.51.100.2', '198.51.100.1', '198.51.100.2']);
  // A message of which the process tells twice, or of a process before it, changes nothing.
  handovers.taken(sent[0]!.id);
  expect(sent).toHaveLength(16);
});

test('a connection that cannot be sent is closed, and the next one goes on', () => {
  const { sent, pass } = start(100);
  const [first] = pass('198.51.100.1', 9);
  sent[0]!.fail();
  expect([first!.isClosed, sent.length]).toEqual([true, 9]);
});

test('what would wait beyond the bound is closed, as is all when the process ends', () => {
  const { handovers, pass } = start(3);
  const all = pass('198.51.100.1', 12);
  expect(all.filter(({ isClosed }) => isClosed)).toEqual([all[11]]);
  // A flood of one network closes none of another.
  const [other] = pass('198.51.100.2');
  expect([other!.isClosed, all.filter(({ isClosed }) => isClosed)]).toEqual([false, [all[10], all[11]]]);
  handovers.close();
  expect([...all, other!, ...pass('198.51.100.1')].every(({ isClosed }) => isClosed)).toBe(true);
});
