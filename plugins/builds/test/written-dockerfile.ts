import type { GitFiles } from '../../../lab/git-server.js'

/** A Dockerfile as people write it for today's engines, with what is beside it. */
export interface WrittenDockerfile {
  readonly title: string
  /** `{untagged}` stands for an image whose tag is `latest`. */
  readonly files: GitFiles
  /** Of the application. */
  readonly fields?: object
  readonly variables?: ReadonlyArray<{
    readonly key: string
    readonly value: string
    readonly is_secret: boolean
  }>
  /** The version of Docker that first knew what it says; 20 unless told. Older ones refuse it in these words. */
  readonly since?: { readonly docker: 23 | 27; readonly refusal: RegExp }
  /** What the container of the image answers, by path. */
  readonly says: Readonly<Record<string, string | RegExp>>
  /** Of what the image says of itself. */
  readonly config?: object
  readonly log?: RegExp
  readonly notInLog?: RegExp
}

/** Ends a Dockerfile whose image serves a folder on 8080. */
export const serves = (folder: string): string =>
  `EXPOSE 8080\nCMD ["httpd", "-f", "-p", "8080", "-h", "${folder}"]\n`
