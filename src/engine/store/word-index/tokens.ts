import Database from 'better-sqlite3';
import { LRUCache } from 'lru-cache';

/** As the migration that makes `memory_text` has it. */
export const TOKENIZER = 'porter unicode61 remove_diacritics 2';
const TEXTS_KEPT = 10_000;

/** FTS5's own tokenizer, which it lends to nobody: in a table of its own, whose vocabulary is read and thrown away. */
let open: { readonly tokenize: (text: string) => readonly string[] } | undefined;
const known = new LRUCache<string, readonly string[]>({ max: TEXTS_KEPT });

/**
 * The tokens of a word or phrase as the word index has them; none for a text without letters and digits.
 * @param text quoted or not
 */
export function tokensOf(text: string): readonly string[] {
  let tokens = known.get(text);
  if (tokens === undefined) {
    open ??= openTokenizer();
    known.set(text, (tokens = open.tokenize(text)));
  }
  return tokens;
}

function openTokenizer() {
  const db = new Database(':memory:');
  db.exec(`CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', tokenize = '${TOKENIZER}');
    CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, 'instance')`);
  const insert = db.prepare('INSERT INTO texts (rowid, text) VALUES (1, ?)');
  const select = db.prepare('SELECT term FROM tokens ORDER BY offset').pluck();
  const clear = db.prepare(`INSERT INTO texts (texts) VALUES ('delete-all')`);
  return {
    tokenize: db.transaction((text: string) => {
      insert.run(text);
      const tokens = select.all() as string[];
      clear.run();
      return tokens;
    }),
  };
}
