import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  buildTypeMissing: [409, 'E_BUILD_TYPE_MISSING', 'there is no builder for the build type {type}: available are {available}; choose one of them, or turn on the plugin that provides {type}'],
  buildTimeout: [409, 'E_BUILD_TIMEOUT', 'the build was stopped after {minutes} minutes, the limit of BUILD_TIMEOUT_MINUTES: make it faster or raise the limit'],
  pullTimeout: [409, 'E_IMAGE_PULL_TIMEOUT', 'the pull of {image} was stopped after {minutes} minutes, the limit of IMAGE_PULL_TIMEOUT_MINUTES: raise it, or load the image into the engine'],
  imageOfOthers: [409, 'E_IMAGE_FOREIGN', 'image {image} was built for another application and cannot be used as a source'],

  badRepository: [400, 'E_SOURCE_ADDRESS', '{repo} is no address of a Git repository: write https://host/owner/repository.git'],
  sshRepository: [400, 'E_SOURCE_SSH', '{repo} is an SSH address, which cannot be cloned: give the https address of the repository, and an access token if it is private'],
  badBranch: [400, 'E_SOURCE_BRANCH_NAME', 'invalid branch name: {branch}'],
  badCommit: [400, 'E_SOURCE_COMMIT_NAME', '{commit} is not the full name of a commit'],
  hostPrivate: [409, 'E_SOURCE_HOST_PRIVATE', 'the repository host {host} has the private or local address {address}, which is not cloned from: add it to GIT_PRIVATE_HOSTS (a list of hosts and ranges, or allow) if it is meant'],
  hostMetadata: [409, 'E_SOURCE_HOST_METADATA', 'the repository host {host} has the address {address}, which gives cloud machines their credentials and is never cloned from'],
  badPrivateHosts: [503, 'E_SOURCE_PRIVATE_HOSTS', 'GIT_PRIVATE_HOSTS holds {entry}, which is neither allow, deny, a host name, an address nor a range such as 10.0.0.0/8'],
  hostUnknown: [502, 'E_SOURCE_HOST_UNKNOWN', 'the repository host {host} could not be resolved ({reason}): check its spelling and the DNS settings of this machine'],
  unreachable: [502, 'E_SOURCE_UNREACHABLE', 'the repository {repo} could not be reached: {reason}; check that its host is up and that this machine may connect to it'],
  tls: [502, 'E_SOURCE_TLS', 'no secure connection to the repository {repo}: {reason}; check the certificate of its host'],
  timeout: [502, 'E_SOURCE_TIMEOUT', 'cloning {repo} was stopped after {minutes} minutes: check the connection to its host, or make the repository smaller'],
  redirect: [502, 'E_SOURCE_REDIRECT', 'the repository {repo} redirects to {target}, which is not followed: {reason}'],
  needsCredentials: [409, 'E_SOURCE_CREDENTIALS', 'the repository {repo} does not exist or is private: check the address, or give the application an access token that may read it'],
  credentialsRefused: [409, 'E_SOURCE_CREDENTIALS', 'the host of {repo} refused the access token: it may have expired or lack the right to read this repository; give the application a new one'],
  forbidden: [409, 'E_SOURCE_FORBIDDEN', 'the host of {repo} forbids reading it (403): check what the access token is allowed to do, and whether the host blocks this machine'],
  repositoryMissing: [409, 'E_SOURCE_NOT_FOUND', 'the repository {repo} was not found: check the address; if it is private, give the application an access token that may read it'],
  branchMissing: [409, 'E_SOURCE_BRANCH', 'branch {branch} does not exist in {repo}: push it, or set another branch'],
  empty: [409, 'E_SOURCE_EMPTY', 'nothing to clone from {repo}: it has no commits yet, or it is not the address of a Git repository'],
  commitMissing: [409, 'E_SOURCE_COMMIT', 'commit {commit} does not exist in {repo} any more: it was probably replaced by a forced push; deploy the branch instead'],
  tooLarge: [409, 'E_SOURCE_SIZE', 'the repository {repo} is larger than {limit} MiB, the checkout_mib of the builds plugin: take large files out of it or raise the limit'],
  tooManyFiles: [409, 'E_SOURCE_SIZE', 'the repository {repo} has more than {limit} files, more than a build may have'],
  gitFailed: [502, 'E_SOURCE_GIT', 'cloning {repo} failed: {reason}'],
  gitTooOld: [503, 'E_SOURCE_GIT_VERSION', 'git {version} is too old: {wanted} or newer is needed{why}'],

  pathEscapes: [400, 'E_SOURCE_PATH', '{field} is {path}, which leaves the repository: give a path inside it, relative and without ..'],
  linkEscapes: [409, 'E_SOURCE_LINK', '{path} is a symbolic link that leads out of the source tree: replace it by the file itself'],
  rootMissing: [409, 'E_SOURCE_ROOT', 'the root directory {path} does not exist in the repository; directories there are: {found}'],
  dockerfileMissing: [409, 'E_SOURCE_DOCKERFILE', 'there is no Dockerfile at {path}; {found}'],
  badIgnore: [409, 'E_SOURCE_IGNORE', '{file} cannot be used: {reason}'],
  fileTooLarge: [409, 'E_SOURCE_FILE_SIZE', '{path} is larger than {limit} KiB, more than a file of its kind needs']
})
