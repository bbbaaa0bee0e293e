import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createHandOut } from '../../../src/api/processes/start-processes.ts';

/** A connection that only notes whether it was closed. */
class FakeSocket extends EventEmitter {
  isClosed = false;
  remoteAddress = '';
  destroy(): void {
    this.isClosed = true;
  }
}

test('connections are closed while too many of them are on their way to a process', () => {
  const handovers = new Map<number, Socket>();
  const child = { send: () => true } as unknown as ChildProcess;
  const handOut = createHandOut([{ child, handovers }]);
  const connect = (address: string, count: number) =>
    Array.from({ length: count }, () => {
      const socket = Object.assign(new FakeSocket(), { remoteAddress: address });
      handOut(socket as unknown as Socket);
      return socket.isClosed;
    });
  expect(connect('198.51.100.1', 512)).not.toContain(true);
  expect(connect('198.51.100.1', 3)).toEqual([true, true, true]);
  expect(connect('198.51.100.2', 512)).not.toContain(true);
  expect(connect('198.51.100.3', 1)).toEqual([true]);
  // The process has taken one.
  handovers.delete(1);
  expect(connect('198.51.100.3', 2)).toEqual([false, true]);
  expect(handovers.size).toBe(1_024);
});
