import { CliError } from './cli-error.ts';
import { ConnectionError, type Client } from './client.ts';
import { count } from './terminal.ts';

/** Number of lines of an import by their result. */
export interface ImportCounts {
  accepted: number;
  duplicate: number;
  rejected: number;
}

/**
 * One line of the server's reply: a result with the number of its line, or at the end the summary, without a number.
 */
interface ReplyLine {
  readonly line?: number;
  readonly deduplicated?: boolean;
  readonly error?: { readonly code: string; readonly message: string };
}

/**
 * Sends memories as NDJSON, one on each line, and counts the results as they arrive.
 * @param onResult called for each line that was answered, with the counts so far, the number of the line, and the
 *   reason if it was rejected
 * @returns the counts of all lines
 * @throws CliError if the server or the connection fails before the end; every line that was answered and not rejected
 *   is stored
 */
export async function sendMemories(
  client: Client,
  body: AsyncIterable<Uint8Array | string>,
  onResult: (counts: ImportCounts, line: number, refusal?: string) => void,
): Promise<ImportCounts> {
  const counts: ImportCounts = { accepted: 0, duplicate: 0, rejected: 0 };
  try {
    for await (const reply of client.exchangeLines('/memory/add/batch', body)) {
      const { line, error, deduplicated = false } = reply as ReplyLine;
      if (line === undefined) {
        if (error !== undefined) throw brokenOff(`the server stopped (${error.message})`, counts);
        return counts;
      }
      counts[error !== undefined ? 'rejected' : deduplicated ? 'duplicate' : 'accepted']++;
      onResult(counts, line, error?.message);
    }
  } catch (error) {
    if (error instanceof ConnectionError && answered(counts) > 0) throw brokenOff('the connection broke off', counts);
    throw error;
  }
  throw brokenOff('the connection broke off', counts);
}

function brokenOff(reason: string, counts: ImportCounts): CliError {
  return new CliError(
    `${reason} after ${count(answered(counts))} lines: ` +
      'run the same command again, what is stored already is recognised',
  );
}

function answered({ accepted, duplicate, rejected }: ImportCounts): number {
  return accepted + duplicate + rejected;
}
