import type { NamedOperations, Operations } from './operations.generated.js'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Operation = keyof Operations

/** The paths that have an operation of this method. */
export type Path<M extends Method> = Operation extends infer O
  ? O extends `${M} ${infer P}`
    ? P
    : never
  : never
export type Of<M extends Method, P extends string> = `${M} ${P}` extends infer K extends Operation
  ? Operations[K]
  : never

/** What an operation answers: `Answer<'GET /api/projects/{projectId}'>`. */
export type Answer<K extends Operation> = Operations[K]['answer']
/** What it takes: `Body<'POST /api/projects'>`. */
export type Body<K extends Operation> = Operations[K]['body']

/** A field that may be left out when nothing in it is required. */
type Field<Name extends string, T> = T extends undefined
  ? { readonly [K in Name]?: undefined }
  : {} extends T
    ? { readonly [K in Name]?: T }
    : { readonly [K in Name]: T }

/** What stands in an address is text in the end: numbers and booleans are written out. */
type InAddress<T> = { [K in keyof T]: string extends T[K] ? T[K] | number | boolean : T[K] }

interface Settings {
  /** Ends the request: `AbortSignal.timeout(5_000)`. */
  readonly signal?: AbortSignal
  readonly headers?: Readonly<Record<string, string>>
  /** `Idempotency-Key`: the same key within 24 hours gets the first answer. */
  readonly idempotencyKey?: string
}

/** For each operation by itself: of all together the fields would be crossed, which are too many types. */
export type Options<T extends { params: unknown; query: unknown; body: unknown }> = T extends unknown
  ? Settings &
      Field<'params', InAddress<T['params']>> &
      Field<'query', InAddress<T['query']>> &
      Field<'body', T['body']>
  : never

/** The arguments after the path: none are needed when nothing is required. */
export type Rest<T extends { params: unknown; query: unknown; body: unknown }> =
  {} extends Options<T> ? [options?: Options<T>] : [options: Options<T>]

/** What a list holds, be it the answer itself or its `items`. */
export type Item<T> =
  T extends ReadonlyArray<infer I> ? I : T extends { items: ReadonlyArray<infer I> } ? I : never

/** The operations by their names: `busbar.operations.CreateProject({ body })`. */
export type OperationCalls = {
  readonly [N in keyof NamedOperations]: (
    ...rest: Rest<Operations[NamedOperations[N]]>
  ) => Promise<Operations[NamedOperations[N]]['answer']>
}
