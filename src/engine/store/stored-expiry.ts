/**
 * Returns an expiry (Unix ms) as it is stored; null and undefined stay as they are. The indexes by which expired
 * memories and documents are found hold positive times only. A time at or before the epoch has passed just as well, so
 * it becomes 1.
 */
export function storedExpiry<Time extends number | null | undefined>(expiresAt: Time): Time | number {
  return typeof expiresAt === 'number' ? Math.max(1, expiresAt) : expiresAt;
}
