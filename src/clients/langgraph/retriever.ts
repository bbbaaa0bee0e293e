import { Document } from '@langchain/core/documents';
import { BaseRetriever, type BaseRetrieverInput } from '@langchain/core/retrievers';
import { connect, type CairnOptions, type Send } from '../connection.ts';

export interface CairnRetrieverOptions extends CairnOptions, BaseRetrieverInput {
  /** User whose memories are searched; those of all users by default. */
  readonly userId?: string | undefined;
  /** Greatest number of documents; that of the server, 8, by default. */
  readonly k?: number | undefined;
  /** Further fields of `POST /memory/query`, such as `filters` and `min_score`; no `format`. */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * The fields of a match that become the id and the text of a document. All its other fields become the document's
 * metadata.
 */
interface Match {
  readonly id: string;
  readonly content: string;
}

/**
 * A retriever of LangChain that queries a Cairn server. Each memory found becomes a document with its id and text. The
 * document's metadata are all other fields of the match in `POST /memory/query`, such as `score` and the memory's own
 * `metadata`.
 */
export class CairnRetriever extends BaseRetriever {
  static override lc_name() {
    return 'CairnRetriever';
  }
  override lc_namespace = ['cairn-memory', 'retrievers'];
  readonly #send: Send;
  readonly #fields: object;

  constructor({ url, apiKey, timeoutMs, fetch, userId, k, query, ...input }: CairnRetrieverOptions) {
    super(input);
    this.#send = connect({ url, apiKey, timeoutMs, fetch });
    this.#fields = {
      ...query,
      ...(userId === undefined ? {} : { user_id: userId }),
      ...(k === undefined ? {} : { k }),
    };
  }

  override async _getRelevantDocuments(query: string): Promise<Document[]> {
    const reply = (await this.#send('POST', '/memory/query', { ...this.#fields, query })) as {
      readonly matches: readonly Match[];
    };
    return reply.matches.map(({ id, content, ...metadata }) => new Document({ id, pageContent: content, metadata }));
  }
}
