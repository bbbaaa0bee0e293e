/** Translation of items between the engine's names and the names of the wire. */
import type { ItemPlace, Memory, NewItem } from '../../engine/index.ts';
import type { ItemPlaceBody, ItemReply, NewItemBody } from '../schemas/items.ts';
import { memoryItem } from './memories.ts';

export function toItemPlace({ user_id, namespace, key }: ItemPlaceBody): ItemPlace {
  return { userId: user_id ?? '', namespace: namespace ?? '', key };
}

/** Translates an item to put; what was left out says nothing. */
export function toNewItem(body: NewItemBody): NewItem {
  return {
    ...toItemPlace(body),
    content: body.content ?? null,
    value: body.value ?? null,
    tags: body.tags ?? [],
    files: body.files ?? [],
    metadata: body.metadata ?? {},
    type: body.type ?? null,
    title: body.title ?? '',
    gist: body.gist ?? '',
    entities: body.entities ?? null,
    eventTime: body.event_time ?? null,
    validFrom: body.valid_from ?? null,
    validTo: body.valid_to ?? null,
    expiresAt: body.expires_at ?? null,
    importance: body.importance ?? null,
    confidence: body.confidence ?? 1,
  };
}

export function itemOf(memory: Memory): ItemReply {
  const { namespace, value } = memory;
  return { ...memoryItem(memory), key: memory.externalId ?? '', namespace, value };
}
