import { z } from 'zod';
import {
  type EntityDetails,
  type EntitySummary,
  isEngineError,
  quoteLine,
  type Tenant,
} from '../../../engine/index.ts';
import { LIMITS } from '../../schemas/value-limits.ts';
import { label } from '../../schemas/values.ts';
import { READS, tool } from '../tool.ts';

/**
 * Greatest number of names (of people, things …) in a list, and of relations and memories that are shown with one name.
 */
const MAX_SHOWN = 30;
const NAME_CHARACTERS = 128;
const CUT = 'Not all memories were looked at, so something may be missing.';

export const findEntities = tool({
  name: 'find_entities',
  title: 'Find names',
  description: 'Show what memories say about a person, project or thing, or list the names that begin with a text.',
  needs: 'read',
  annotations: READS,
  input: z.strictObject({
    name: label(LIMITS.labelCharacters).describe('Name or its beginning; empty lists the most mentioned.'),
  }),
  async run({ tenant }, { name }) {
    const entity = name === '' ? undefined : await findEntity(tenant, name);
    if (entity !== undefined) return describeEntity(entity);
    const page = { limit: MAX_SHOWN, offset: 0 };
    const { items, isCut } = await tenant.listEntities({ prefix: name, userId: undefined }, page);
    const names = items.length === 0 ? 'No memory mentions a name that begins so.' : items.map(summaryLine).join('\n');
    return isCut ? `${names}\n${CUT}` : names;
  },
});

async function findEntity(tenant: Tenant, name: string): Promise<EntityDetails | undefined> {
  try {
    return await tenant.getEntity(name, undefined);
  } catch (error) {
    if (isEngineError(error, 'not_found')) return undefined;
    throw error;
  }
}

/**
 * Describes an entity (a name that memories mention, such as a person or a product) as text: up to 30 of its relations
 * to other names, and the ids of up to 30 latest memories that mention it. Names come from stored texts, so they are
 * quoted.
 */
export function describeEntity(entity: EntityDetails): string {
  const { relations, memoryIds, isCut } = entity;
  return [
    summaryLine(entity),
    ...relations.slice(0, MAX_SHOWN).map(({ type, direction, label, memories }) => {
      const other = quoteLine(label, NAME_CHARACTERS);
      return `- ${direction === 'out' ? `${type} ${other}` : `${other} ${type} it`} (${memories} memories)`;
    }),
    `Latest memories: ${memoryIds.slice(0, MAX_SHOWN).join(', ')}`,
    ...(isCut ? [CUT] : []),
  ].join('\n');
}

function summaryLine({ label, type, mentions }: EntitySummary): string {
  return `${quoteLine(label, NAME_CHARACTERS)} (${type}), in ${mentions} memories`;
}
