<?php
// Packs the plugin as WordPress installs it. Usage: php package.php FOLDER FILE.zip
[, $folder, $file] = $argv;
@unlink($file);
$archive = new PharData($file, 0, null, Phar::ZIP);
$files = new RecursiveIteratorIterator(new RecursiveDirectoryIterator($folder, FilesystemIterator::SKIP_DOTS));
$archive->buildFromIterator($files, dirname($folder));
echo 'wordpress: built ', basename($file), ', ', filesize($file), " bytes\n";
