import { expect } from 'vitest';
import type { Tenant } from '../../src/engine/index.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { newMemory, START } from './engine-fixture.ts';
import { jsonLines } from './portable.ts';

/** More links than one part of an export examines. */
const MANY = Array.from({ length: 2_500 }, (_, no) => `type ${String(no).padStart(5, '0')}`);

/**
 * Links memories of two users to a hub and the hub to them, and expects an export to have each link once, in the order
 * of the memories, with at most 2,000 in a part.
 * @param store the tenant's own store, which is empty
 */
export async function expectHubExported(tenant: Tenant, store: Store): Promise<void> {
  const users = ['ana', 'ana', 'ana', 'ben'];
  await tenant.addMemories(users.map((userId, no) => newMemory({ content: `memory ${no}`, userId })));
  const read = store.prepare('SELECT seq AS memoryNo, id FROM memories ORDER BY seq');
  const [before, hub, after, other] = read.all() as { memoryNo: number; id: string }[];
  type Linked = NonNullable<typeof hub>;
  const insert = store.prepare(
    `INSERT INTO edges (src, dst, type, weight, automatic, created_at, updated_at)
     SELECT ?, ?, value, 1, 0, ?, ? FROM json_each(?)`,
  );
  const link = (src: Linked, dst: Linked, types: readonly string[]) => {
    store.write(() => insert.run(src.memoryNo, dst.memoryNo, START, START, JSON.stringify(types)));
    return types.map((type) => [src.id, dst.id, type]);
  };
  const links = [
    ...link(before!, hub!, MANY.slice(0, 3)),
    ...link(hub!, before!, MANY),
    ...link(hub!, after!, MANY),
    ...link(hub!, other!, MANY),
    ...link(after!, hub!, MANY.slice(0, 2)),
  ];

  const linksOf = async (userIds?: readonly string[]) => {
    const parts: string[] = [];
    for await (const part of tenant.exportLines({ filter: { userIds } })) parts.push(part);
    expect(Math.max(...parts.map((part) => jsonLines(part).length))).toBe(2_000);
    const lines = jsonLines(parts.join('')).filter(({ type }) => type === 'link');
    return lines.map(({ src, dst, link_type }) => [src, dst, link_type]);
  };
  expect(await linksOf()).toEqual(links);
  expect(await linksOf(['ana'])).toEqual(links.filter(([, dst]) => dst !== other!.id));
}
