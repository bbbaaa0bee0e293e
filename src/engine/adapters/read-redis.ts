import { silentLogger } from '../ports.ts';
import { connectRedis } from './redis-link.ts';

/** Number of keys that one SCAN command requests. */
const SCANNED = 500;

/**
 * Reads all keys and values of the database that `redisUrl` names as texts, each with the name of its key (`at`), to
 * search them for traces. For a key whose type is not text, list, set, sorted set, hash or stream, only the name is
 * read. A key may come twice; one that is made meanwhile may be missing. While Redis is down it waits without a limit.
 */
export async function* readRedis(redisUrl: string): AsyncIterable<{ readonly at: string; readonly text: string }> {
  const redis = await connectRedis({ redisUrl, logger: silentLogger }, { blocking: true });
  const readers: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
    string: (key) => redis.get(key),
    list: (key) => redis.lrange(key, 0, -1),
    set: (key) => redis.smembers(key),
    zset: (key) => redis.zrange(key, '0', '-1'),
    hash: (key) => redis.hgetall(key),
    stream: (key) => redis.xrange(key, '-', '+'),
  };
  try {
    for (let cursor = '0'; ;) {
      const [next, keys] = await redis.scan(cursor, 'COUNT', SCANNED);
      for (const key of keys) {
        const value = await readers[await redis.type(key)]?.(key);
        yield { at: key, text: `${key}\n${typeof value === 'string' ? value : (JSON.stringify(value) ?? '')}` };
      }
      cursor = next;
      if (cursor === '0') return;
    }
  } finally {
    redis.disconnect();
  }
}
