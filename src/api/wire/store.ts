/** Translates items between the engine's names and those of LangGraph's stores. */
import {
  EngineError,
  type Json,
  jsonOf,
  JsonText,
  type Memory,
  type MetadataCondition,
  type NewItem,
} from '../../engine/index.ts';
import { LIMITS } from '../schemas/value-limits.ts';
import type { StoreItemReply, StorePutBody } from '../schemas/store.ts';
import { toNewItem } from './items.ts';
import { textsAtPaths } from './texts-at-paths.ts';

const MINUTE_MS = 60_000;

/**
 * Translates an item to put. With `index`, only the texts at its paths are searched; with `index: false` none are; by
 * default all are.
 * @param now current time from which `ttl` counts, Unix ms
 * @throws EngineError `too_large` if the texts at the paths have more than 256 KiB; `invalid` as `textsAtPaths` does
 */
export function toStoredItem(body: StorePutBody, now: number): NewItem {
  const { namespace, key, value, index, ttl, user_id } = body;
  const content = index === false ? '' : index == null ? null : textsAtPaths(value, index);
  if (content !== null && Buffer.byteLength(content) > LIMITS.contentBytes)
    throw new EngineError('too_large', `index: the texts at these paths have more than ${LIMITS.contentBytes} bytes`);
  return {
    ...toNewItem({ key, namespace: namespace.join('.'), value, user_id }),
    content,
    ...lifetimeOf(ttl ?? null, now),
  };
}

function lifetimeOf(minutes: number | null, now: number): Pick<NewItem, 'expiresAt' | 'ttlMs'> {
  if (minutes === null) return { expiresAt: null, ttlMs: null };
  const ttlMs = Math.ceil(minutes * MINUTE_MS);
  return { expiresAt: now + ttlMs, ttlMs };
}

/** Translates an item. A value that is no JSON object, which other routes can store, is shown as an empty object. */
export function storeItemOf(memory: Memory, score?: number): StoreItemReply {
  const { namespace, externalId, createdAt, updatedAt } = memory;
  return {
    namespace: namespace === '' ? [] : namespace.split('.'),
    key: externalId ?? '',
    value: objectOf(jsonOf(memory, 'value')),
    created_at: new Date(createdAt).toISOString(),
    updated_at: new Date(updatedAt).toISOString(),
    ...(score === undefined ? {} : { score }),
  };
}

/** Returns a value if it is an object, which may be a `JsonText`; else an empty object. */
function objectOf(value: Json): Record<string, Json> {
  const isObject =
    value instanceof JsonText
      ? value.text.startsWith('{')
      : typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, Json>) : {};
}

/**
 * Translates a filter of LangGraph; undefined if it has no conditions. In such a filter, a bare null or `$eq: null`
 * requires a value that is present and null, and an empty object matches anything.
 */
export function toValueConditions(
  filter: Readonly<Record<string, Json>> | null | undefined,
): Record<string, MetadataCondition> | undefined {
  const conditions = Object.entries(filter ?? {}).flatMap(([key, wanted]): [string, MetadataCondition][] => {
    if (wanted === null) return [[key, NULL_THERE]];
    if (typeof wanted !== 'object' || Array.isArray(wanted)) return [[key, wanted]];
    const operators = wanted as Readonly<Record<string, Json>>;
    if (Object.keys(operators).length === 0) return [];
    return [[key, operators['$eq'] === null ? { ...operators, ...NULL_THERE } : wanted]];
  });
  return conditions.length === 0 ? undefined : Object.fromEntries(conditions);
}

const NULL_THERE = { $eq: null, $exists: true };
