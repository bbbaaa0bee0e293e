import { describe, expect, test } from 'vitest';
import { createGate } from '../../src/workers/gate.ts';

/** A gate whose time stands still until it is told otherwise. */
function openGate() {
  let now = 1_000;
  const gate = createGate(() => now);
  /** Passes, and stays until what this returns is called. */
  const enter = async (way: 'together' | 'alone') => {
    const leave = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    const left = gate[way](() => {
      entered.resolve();
      return leave.promise;
    });
    return {
      entered: entered.promise,
      leave: () => {
        leave.resolve();
        return left;
      },
    };
  };
  return { gate, enter, wait: (ms: number) => void (now += ms) };
}

describe('whoever was alone', () => {
  test('leaves the others five times as long as it kept them out, the waiting for them to leave included', async () => {
    const { gate, enter, wait } = openGate();
    expect(gate.msUntilAlone()).toBe(0);
    const other = await enter('together');
    const lone = await enter('alone');
    wait(300);
    await other.leave();
    await lone.entered;
    wait(700);
    await lone.leave();
    expect(gate.msUntilAlone()).toBe(5_000);
    wait(4_999);
    expect(gate.msUntilAlone()).toBe(1);
    wait(1);
    expect(gate.msUntilAlone()).toBe(0);
  });

  test('keeps everybody else from asking, also while it waits', async () => {
    const { gate, enter } = openGate();
    const other = await enter('together');
    const lone = await enter('alone');
    expect(gate.msUntilAlone()).toBeGreaterThan(0);
    await other.leave();
    await lone.entered;
    expect(gate.msUntilAlone()).toBeGreaterThan(0);
    await lone.leave();
    expect(gate.msUntilAlone()).toBe(0);
  });

  test('however often somebody asks, the gate is closed for a sixth of the time at most', async () => {
    const { gate, enter, wait } = openGate();
    let closedMs = 0;
    let passedMs = 0;
    const step = (ms: number) => {
      wait(ms);
      passedMs += ms;
    };
    for (let ms = 1; ms <= 200; ms++) {
      while (gate.msUntilAlone() > 0) step(1);
      const lone = await enter('alone');
      await lone.entered;
      step(ms);
      closedMs += ms;
      await lone.leave();
    }
    while (gate.msUntilAlone() > 0) step(1);
    expect(closedMs / passedMs).toBeCloseTo(1 / 6, 6);
  });
});
