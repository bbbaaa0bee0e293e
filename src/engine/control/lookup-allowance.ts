/**
 * Number of look-ups that one allowance permits in a second. Unknown keys, unknown sessions, the key that signs
 * sessions, and unknown names of tenants in tokens have an allowance each in a process. A look-up is a round trip to
 * PostgreSQL, for which all requests of the process wait, and anyone can cause it with a key that does not exist.
 */
const PER_SECOND = 20;

/**
 * Makes an allowance of 20 look-ups a second, which also saves up no more than 20.
 * @param now returns a time in ms that never goes back
 * @returns a function that tells whether one more look-up is allowed now, and takes it off the allowance if so
 */
export function createLookupAllowance(now: () => number = () => performance.now()): () => boolean {
  let left = PER_SECOND;
  let lookedAt = now();
  return () => {
    const time = now();
    left = Math.min(PER_SECOND, left + ((time - lookedAt) / 1000) * PER_SECOND);
    lookedAt = time;
    if (left < 1) return false;
    left -= 1;
    return true;
  };
}
