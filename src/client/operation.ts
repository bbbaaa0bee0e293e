/**
 * Describes how the client sends one operation of the API. The table of all operations is in generated/operations.ts.
 */
export interface Operation {
  /** HTTP method and path, such as `GET /memory/{id}`; `{name}` stands for a field of the input. */
  readonly at: string;
  /**
   * Fields of the input that belong into the query string although the operation has a body. Undefined if the operation
   * has no body: then all fields that are not in the path belong into the query string.
   */
  readonly query?: readonly string[];
  /**
   * Says how a list is read page by page; undefined if the reply is not a page. `cursor` and `before` are names of
   * input fields that say where a page begins, and the reply contains the value for the next page. With `u` and
   * `offset` the input field is `u`, an offset that the client counts itself; with `offset` only the `total` of the
   * reply shows where the list ends.
   */
  readonly page?: 'cursor' | 'before' | 'u' | 'offset';
  /** Set if sending the request twice may have two effects. If no reply comes, it is then not sent again. */
  readonly once?: true;
  /** Set if the operation takes an idempotency key. With a key, the request may be sent again. */
  readonly keyed?: true;
  /** Set if the reply is plain text instead of JSON. */
  readonly text?: true;
  /** Set if the reply is a stream of server-sent events. */
  readonly events?: true;
}
