import { isIPv6 } from 'node:net';

/** Pause after the first wrong key too many (ms); each further one doubles it, up to `MAX_PAUSE_MS`. */
const MIN_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** Time without a wrong key after which an address begins anew (ms). */
const FORGET_MS = 600_000;
/** Most addresses that are remembered; the one that was seen least recently is forgotten first. */
const MAX_ADDRESSES = 10_000;

/** What is known of one address. Times are those of `performance.now()`. */
interface Guesser {
  wrong: number;
  lastWrongAt: number;
  pausedUntil: number;
  /** Whether OM_API_KEY was sent from there while no pause was on. */
  isTrusted: boolean;
}

/**
 * Slows down who guesses OM_API_KEY, the only secret that a person may have chosen. Keys that Cairn makes have 256
 * random bits, so a right one needs no protection and is never slowed.
 */
export interface GuessLimit {
  /** Time for which wrong keys of an address are refused without a look, ms; 0 if they are looked at. */
  pauseMs(address: string): number;
  /** Counts a wrong key. Returns true if a pause began after a time without pauses: once for each burst. */
  noteWrong(address: string): boolean;
  /**
   * Says whether OM_API_KEY counts, which was sent by this address. During a pause it counts only for an address that
   * sent it before, so that a guesser cannot tell a right guess from a wrong one, and nobody at work is interrupted.
   */
  admitsRightKey(address: string): boolean;
}

/** @param freeTries wrong keys of one address that are answered without a pause */
export function createGuessLimit(freeTries: number): GuessLimit {
  const guessers = new Map<string, Guesser>();

  /** Finds or adds an address, and makes it the most recently seen one. */
  function guesserAt(address: string): Guesser {
    const place = placeOf(address);
    const guesser = guessers.get(place) ?? { wrong: 0, lastWrongAt: -Infinity, pausedUntil: 0, isTrusted: false };
    guessers.delete(place);
    guessers.set(place, guesser);
    if (guessers.size > MAX_ADDRESSES) guessers.delete(guessers.keys().next().value!);
    return guesser;
  }

  const pauseMs = (address: string) =>
    Math.max(0, (guessers.get(placeOf(address))?.pausedUntil ?? 0) - performance.now());

  return {
    pauseMs,
    noteWrong(address) {
      const guesser = guesserAt(address);
      const now = performance.now();
      if (now - guesser.lastWrongAt > FORGET_MS) guesser.wrong = 0;
      guesser.wrong++;
      guesser.lastWrongAt = now;
      const tooMany = guesser.wrong - freeTries;
      if (tooMany > 0) guesser.pausedUntil = now + Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** (tooMany - 1));
      return tooMany === 1;
    },
    admitsRightKey(address) {
      const guesser = guesserAt(address);
      guesser.isTrusted ||= pauseMs(address) === 0;
      return guesser.isTrusted;
    },
  };
}

/** Returns the address, or of an IPv6 address its first 64 bits, as a single subscriber has at least a /64. */
function placeOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('%')[0]!.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const after = tail === '' ? [] : tail.split(':');
    groups.push(...Array.from({ length: Math.max(0, 8 - groups.length - after.length) }, () => '0'), ...after);
  }
  return groups.slice(0, 4).join(':');
}
