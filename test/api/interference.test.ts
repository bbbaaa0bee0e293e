import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/api/routes.ts';
import { BOUND_KEYS } from '../support/twin-worlds/bound-key.ts';
import {
  compareOperation,
  describedOperations,
  type Finding,
  type Twins,
  viewOf,
} from '../support/twin-worlds/compare-worlds.ts';
import { chooser, type Difference, doAll, HOUR, type Plan } from '../support/twin-worlds/deeds.ts';
import { hiddenDeeds } from '../support/twin-worlds/hidden-deeds.ts';
import { openWorld, type World } from '../support/twin-worlds/open-world.ts';
import { ERASURES, NOT_ASKED, type Operation, RANKED, READS, WRITES } from '../support/twin-worlds/operations.ts';
import { seenDeeds } from '../support/twin-worlds/seen-deeds.ts';

/** Share of the reads that a run makes, chosen by its seed. CAIRN_SHARE=1 makes all, in three times the time. */
const SHARE = Number(process.env.CAIRN_SHARE ?? 0.1);
/** Seed of the first run; CAIRN_SEED repeats another. CAIRN_RUNS says how many runs each case has. */
const SEED = Number(process.env.CAIRN_SEED ?? 1);
const RUNS = Number(process.env.CAIRN_RUNS ?? 1);

describe('a key that is bound to', () => {
  const cases: readonly (readonly [string, Difference, boolean])[] = [
    ['tags', 'place', false],
    ['tags', 'all', false],
    ['tags', 'all', true],
    ['a user and tags', 'place', true],
    ['a user', 'place', false],
    ['a user', 'all', true],
    ['a tenant', 'all', true],
  ];
  const runs = Array.from({ length: RUNS }, (_, n) =>
    cases.map(([name, difference, hasVectors]) => ({ name, difference, hasVectors, seed: SEED + n })),
  ).flat();
  test.each(runs)(
    '$name is answered alike whatever it does not see (difference: $difference, vectors: $hasVectors, seed $seed)',
    async ({ name, ...run }) => {
      const bound = BOUND_KEYS.find((key) => key.name === name)!;
      expect(await compareWorlds({ ...run, bound })).toEqual([]);
    },
  );
});

/** Fills two worlds, asks both everything, and returns what differs. */
async function compareWorlds(plan: Plan): Promise<Finding[]> {
  await using first = await openWorld(plan);
  await using second = await openWorld(plan);
  const worlds = [first, second] as const;
  const seen = seenDeeds(plan);
  const end = seen.at(-1)!.at;
  const statuses: number[][] = [];
  for (const [n, world] of worlds.entries()) {
    statuses.push(await doAll(world, seen, hiddenDeeds(plan, end, n)));
    await settle(world);
  }
  expect(statuses[1], 'the seen things are the same').toEqual(statuses[0]);
  const twins = { worlds, views: worlds.map(viewOf) };
  return [
    ...(await compareAll(twins, plan, { table: READS, share: SHARE, settles: false })),
    ...(await compareAll(twins, plan, { table: RANKED, share: 3 * SHARE, settles: true })),
    // Later writes rest on earlier ones.
    ...(await compareAll(twins, plan, { table: WRITES, share: 1, settles: true })),
    ...(await compareAll(twins, plan, { table: READS, share: SHARE, settles: false })),
    ...(await compareAll(twins, plan, { table: ERASURES, share: 1, settles: true })),
    ...(await compareAll(twins, plan, { table: READS, share: SHARE / 2, settles: false })),
  ];
}

async function settle(world: World): Promise<void> {
  world.clock.advance(HOUR);
  await world.work();
  await world.tend();
}

interface Round {
  readonly table: Readonly<Record<string, Operation>>;
  /** Share of the requests that are made. */
  readonly share: number;
  readonly settles: boolean;
}

async function compareAll(twins: Twins, plan: Plan, { table, share, settles }: Round): Promise<Finding[]> {
  const described = await describedOperations(twins.worlds[0]!);
  const now = twins.worlds[0]!.clock.now();
  const { chance } = chooser(plan.seed + now);
  const findings: Finding[] = [];
  const comparison = { plan, settles, isAsked: () => chance(share) };
  for (const [name, operation] of Object.entries(table))
    findings.push(...(await compareOperation(twins, described.get(name)!, operation, comparison)));
  for (const world of twins.worlds) await settle(world);
  return findings;
}

test('every operation of the description is compared, or says why it is not', async () => {
  await using world = await openWorld({ bound: BOUND_KEYS[0]!, difference: 'all', hasVectors: false, seed: 1 });
  const described = await describedOperations(world);
  const known = new Set([READS, RANKED, WRITES, ERASURES, NOT_ASKED].flatMap((table) => Object.keys(table)));
  expect([...known].filter((name) => !described.has(name))).toEqual([]);
  const unknown = [...described.values()].filter(({ name }) => !known.has(name));
  // What no table names refuses the key before it reads the request. A new operation needs a line in a table.
  for (const { name, method, path } of unknown) {
    expect((await world.send(method, path)).status, name).toBe(403);
    const route = ROUTES.find((candidate) => candidate.name === name)!;
    expect(['admin', 'metrics'], `${name} is open to keys of a tenant`).toContain(route.access);
  }
});
