/** How an operation of the API is sent; generated/operations.ts has the table. */
export interface Operation {
  /** Method and path, such as `GET /memory/{id}`; `{name}` stands for a field of the input. */
  readonly at: string;
  /**
   * The operation has a body. These fields of the input belong into the query string all the same; without a body all
   * fields do that are not in the path.
   */
  readonly query?: readonly string[];
  /**
   * The reply is a page of a list, and this field of the input says where a page begins: the reply names its value for
   * the next page, or with `offset`, the client counts the field `u` on.
   */
  readonly page?: 'cursor' | 'before' | 'u' | 'offset';
  /** A second request may have a second effect, so one without a reply is not sent again. */
  readonly once?: true;
  /** The operation takes an idempotency key, which makes it repeatable. */
  readonly keyed?: true;
  /** The reply is a text of some kind in place of JSON. */
  readonly text?: true;
  /** The reply is a stream of server-sent events. */
  readonly events?: true;
}
