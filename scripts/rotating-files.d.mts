export function withoutThoseOfOtherCommits(files: readonly string[]): readonly string[]
