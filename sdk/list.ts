import type { Static, TObject, TProperties, TSchema } from '@sinclair/typebox'
import type { Access } from './access.js'
import { described } from './described-schema.js'
import { reply } from './reply.js'
import type { ParamsOf, RouteRequest, RouteSchema, RouteSpec } from './route.js'
import { list as listOf, object, type Page, pagingQuery, readPage, Type, wholeList } from './schema.js'

/** One page of a list, and how many rows there are on all its pages. */
export interface Rows<T> {
  readonly rows: readonly T[]
  readonly total: number
}

/**
 * One page of a list that goes on behind a row instead of behind a number of rows, so that rows that come and go meanwhile neither
 * repeat nor leave out any: one that grows without bound.
 */
export interface CursorRows<T> {
  readonly rows: readonly T[]
  /** Left out where to count them is to read them all. */
  readonly total?: number | undefined
  /** What the client gives as `cursor` to get the next page; left out where there is none. */
  readonly next?: string | undefined
}

/** The limits of a page; `fallback` counts where the client names none, or one above `max`. */
export interface PageLimits {
  readonly fallback: number
  readonly max: number
}

/** For a list that may grow without bound: 50 rows a page, 200 at most. */
export const pagedList: PageLimits = Object.freeze({ fallback: 50, max: 200 })

/**
 * A `GET` that answers an array. Its query takes `limit` and `offset` (a bad value is the default), and the
 * answer says in `X-Total-Count` how many rows there are in all.
 */
export interface ListSpec<U extends string, A extends Access, Q extends TProperties, I extends TSchema, Self>
  extends Pick<
    RouteSpec<U, A, {}, Self>,
    | 'url'
    | 'access'
    | 'operationId'
    | 'summary'
    | 'description'
    | 'group'
    | 'timeoutMs'
    | 'limit'
    | 'problems'
  > {
  /** The schema of one row. */
  readonly items: I
  /** Filters besides `limit` and `offset`. */
  readonly query?: Q
  /** Everything at once unless given. */
  readonly page?: PageLimits
  /** It takes `cursor`, and the answer says the next one in `X-Next-Cursor`; see `CursorRows`. */
  readonly cursor?: true
  /** As that of `RouteSpec`; of all rows, as the total changes with them too. */
  readonly version?: (
    request: ListRequest<U, A, Q>,
    self: Self
  ) => string | undefined | Promise<string | undefined>
  readonly handler: (
    request: ListRequest<U, A, Q>,
    self: Self
  ) => CursorRows<Static<I>> | Promise<CursorRows<Static<I>>>
}

export type ListRequest<
  U extends string = string,
  A extends Access = Access,
  Q extends TProperties = {}
> = RouteRequest<U, A, { query: TObject<Q> }> & {
  readonly page: Page & {
    /** As the client gave it; undefined for the first page. */
    readonly cursor?: string | undefined
  }
}

export type ListDeclarer<Self> = <
  const U extends string,
  const A extends Access<NoInfer<ParamsOf<U>>>,
  I extends TSchema,
  Q extends TProperties = {}
>(
  spec: ListSpec<U, A, Q, I, Self>
) => void

/** The query of a list with pages of this size, as it is described. */
const queryOf = ({ fallback, max }: PageLimits): typeof pagingQuery => ({
  ...pagingQuery,
  limit: described(
    pagingQuery.limit,
    max === wholeList.max
      ? 'How many rows at most, from 1; all of them unless given, and for what is no such number.'
      : `How many rows at most, from 1 to ${max}; ${fallback} unless given, and for what is no such number.`
  )
})

const totalHeader = {
  'X-Total-Count': described(
    Type.Integer(),
    'How many rows there are on all pages, with the filters of this request; of more than 10 000 it may be some minutes old.'
  )
}

const isSize = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= wholeList.max

/** Whatever their types claim: plugins may be JavaScript, and a size that is none would reach the database. */
function checkPage(url: string, query: TProperties, { fallback, max }: PageLimits): void {
  if (!isSize(fallback) || !isSize(max) || fallback > max)
    throw new RangeError(`${url}: page is { fallback, max }, whole numbers from 1, fallback not above max`)
  for (const name of Object.keys(pagingQuery))
    if (Object.hasOwn(query, name)) throw new RangeError(`${url}: a list has its own ${name} in the query`)
}

const cursorQuery = {
  cursor: described(
    Type.Optional(Type.String({ maxLength: 200, examples: ['0199c0ff-ee00-8123-8456-000000000001'] })),
    'The `X-Next-Cursor` of the page before; the first page unless given. `offset` counts from there.'
  )
}

const cursorHeaders = {
  'X-Total-Count': described(
    Type.Integer(),
    'How many rows there are on all pages, with the filters of this request; left out where to count them is to read them all.'
  ),
  'X-Next-Cursor': described(
    Type.String(),
    'What to give as `cursor` to get the next page; left out on the last one.'
  )
}

/** The route that a list is. Throws for what no page can be. */
export function listRoute<Self>(
  spec: ListSpec<string, Access, TProperties, TSchema, Self>
): RouteSpec<string, Access, RouteSchema, Self> {
  const { items, query = {}, page: limits = wholeList, cursor = false, version, handler, ...rest } = spec
  checkPage(spec.url, query, limits)
  const withPage = (request: RouteRequest): never => {
    const given = request.query as { limit?: string; offset?: string; cursor?: string }
    const page = readPage(given, limits)
    return Object.assign(request, { page: cursor ? { ...page, cursor: given.cursor } : page }) as never
  }
  return {
    ...rest,
    method: 'GET',
    schema: {
      query: object({ ...query, ...queryOf(limits), ...(cursor ? cursorQuery : {}) }),
      response: { 200: listOf(items) }
    },
    responseHeaders: cursor ? cursorHeaders : totalHeader,
    ...(version === undefined ? {} : { version: (request, self) => version(withPage(request), self) }),
    handler: async (request, self) => {
      const { rows, total, next } = await handler(withPage(request), self)
      return reply(200, rows, {
        headers: {
          ...(total === undefined ? {} : { 'X-Total-Count': String(total) }),
          ...(next === undefined ? {} : { 'X-Next-Cursor': next })
        }
      })
    }
  }
}

/**
 * The rows of a page with their total. `count` is the statement that counts them all, `select count(*) as total …`; it
 * runs only where the page does not show the total: when it is full, or not the first. Rejects with what `count` does.
 */
export async function countedRows<T>(
  { limit, offset }: Page,
  rows: readonly T[],
  count: () => Promise<ReadonlyArray<{ readonly total: number }>>
): Promise<Rows<T>> {
  if (offset === 0 && rows.length < limit) return { rows, total: rows.length }
  const [counted] = await count()
  return { rows, total: counted?.total ?? 0 }
}

/** The rows of a page of a list that is at hand as a whole. */
export const pageOf = <T>({ limit, offset }: Page, all: readonly T[]): Rows<T> => ({
  rows: all.slice(offset, offset + limit),
  total: all.length
})
