import type { IncomingMessage } from 'node:http';
import type { Request } from 'express';
import { EngineError } from '../engine/index.ts';
import { addTo, type ByteShare } from './byte-share.ts';
import { localsOf } from './reply.ts';

const MIB = 1024 * 1024;
/**
 * Greatest number of bytes of request bodies that one API key may hold in memory: 32 connections with bodies of 1 MiB.
 * `TOTAL_BYTES` is the limit for all keys together. A key that holds nothing else may exceed both with one body, up to
 * `FULL_BYTES` for all keys.
 */
const KEY_BYTES = 32 * MIB;
/**
 * Greatest number of bytes of request bodies that all keys of one tenant may hold in memory together, since a tenant
 * may make a thousand keys.
 */
const TENANT_BYTES = 64 * MIB;
const TOTAL_BYTES = 128 * MIB;
/**
 * Greatest number of bytes of request bodies in memory, with that of a key that has no other one. A body that would go
 * beyond it is refused.
 */
const FULL_BYTES = 256 * MIB;
/**
 * First bytes of each body that are not counted, so that a short request is never refused. Over the 10,000 connections
 * of `OM_MAX_CONNECTIONS` they are 80 MiB.
 */
const FREE_BYTES = 8 * 1024;

/** The bytes that one request holds in memory. */
export interface BodyPlace {
  /**
   * Counts the bytes of its body that the request holds now: `bytes` replaces the number of the call before. The first
   * 8 KiB are not counted.
   * @throws EngineError `unavailable` with `retryAfterMs` if these bytes exceed the share of the key, of its tenant, or
   *   of all keys
   */
  readonly hold: (bytes: number) => void;
  /** Gives the bytes back. Later calls of `hold` do nothing. */
  readonly leave: () => void;
}

/**
 * Limits the memory that bodies of requests take in this process, from their arrival until the request is answered. A
 * client may send all of a body but its last byte, on thousands of connections, and each would be kept for 25 s.
 */
export class BodyPlaces {
  readonly #held: ByteShare = { ofKey: new Map(), total: 0 };
  readonly #ofTenants: ByteShare = { ofKey: new Map(), total: 0 };

  /** Number of bytes that all bodies hold, without the first 8 KiB of each. */
  get bytes(): number {
    return this.#held.total;
  }

  /**
   * Makes what counts the bytes of one request's body. One key may hold 32 MiB, the keys of one tenant 64 MiB, and all
   * keys together 128 MiB. A key that holds nothing else may send one body until all keys together hold 256 MiB, within
   * the share of its tenant.
   * @param key text that identifies the API key with which the request came
   * @param tenant id of the tenant to which it came
   */
  enter(key: string, tenant: string): BodyPlace {
    let held = 0;
    let isOver = false;
    const hold = (size: number) => {
      if (isOver) return;
      const bytes = Math.max(0, size - FREE_BYTES);
      if (bytes === held) return;
      const ofTenant = (this.#ofTenants.ofKey.get(tenant) ?? 0) - held + bytes;
      if (bytes > held && (ofTenant > TENANT_BYTES || !this.#hasRoom(key, held, bytes))) throw refused();
      addTo(this.#held, key, bytes - held);
      addTo(this.#ofTenants, tenant, bytes - held);
      held = bytes;
    };
    const leave = () => {
      hold(0);
      isOver = true;
    };
    return { hold, leave };
  }

  #hasRoom(key: string, before: number, bytes: number): boolean {
    const others = (this.#held.ofKey.get(key) ?? 0) - before;
    const total = this.#held.total - before + bytes;
    if (others === 0) return total <= FULL_BYTES;
    return others + bytes <= KEY_BYTES && total <= TOTAL_BYTES;
  }
}

/** The one `BodyPlaces` of this process, which all its requests share. */
export const bodyPlaces = new BodyPlaces();

/**
 * Makes what counts the bytes of a request's body, for the key that was admitted, among all bodies of this process.
 * They are given back when the request has been answered or its connection has closed.
 */
export function placeOfBody(request: IncomingMessage): BodyPlace {
  const { res: response } = request as Request;
  const { keyId = '', tenantId = '' } = response === undefined ? {} : localsOf(response);
  const place = bodyPlaces.enter(keyId, tenantId);
  const end = response ?? request;
  // A place that is entered after the event `close` would never be left.
  if (end.destroyed) place.leave();
  else end.once('close', place.leave);
  return place;
}

function refused(): EngineError {
  return new EngineError(
    'unavailable',
    'too many bytes of requests with this key are in memory: send fewer large bodies at once, or this one again later',
    { retryAfterMs: 1_000 },
  );
}
