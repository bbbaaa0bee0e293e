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
   * Name of the input field that says where a page of a list begins. For `cursor` and `before` the reply contains the
   * value for the next page; for `u` the client counts the entries itself. `offset` is the same, and its field is `u`,
   * too, but only the `total` of the reply shows where the list ends. Undefined if the reply is not a page.
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
