package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// watched are the packages whose functions are uses of their own: a rule may
// forbid time.Now and leave time.Duration.
var watched = []string{"os", "syscall", "time"}

// readGraph reads the source of the module in folder root, whatever system a
// file is for, and returns what each package uses, in order. It parses here and
// does not ask the go command, so that the test cache sees which files count.
func readGraph(root, module string) (map[string][]string, error) {
	uses := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skip(root, name)
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		pkg := path.Join(module, filepath.ToSlash(folder))
		if uses[pkg] == nil {
			uses[pkg] = map[string]bool{}
		}
		return readFile(name, uses[pkg])
	})
	if err != nil {
		return nil, fmt.Errorf("archtest: reading %s: %w", root, err)
	}
	graph := map[string][]string{}
	for pkg, set := range uses {
		graph[pkg] = slices.Sorted(maps.Keys(set))
	}
	return graph, nil
}

// skip leaves out folders that hold no package of this module.
func skip(root, folder string) error {
	if folder == root {
		return nil
	}
	base := filepath.Base(folder)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

// readFile adds what one file uses to set.
func readFile(name string, set map[string]bool) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	called := map[string]string{} // what the file calls a watched package
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		set[imported] = true
		if !slices.Contains(watched, imported) {
			continue
		}
		local := imported
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			return fmt.Errorf("%s: a dot import of %s hides what is used of it", name, imported)
		}
		called[local] = imported
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if id, ok := selector.X.(*ast.Ident); ok && called[id.Name] != "" {
				set[called[id.Name]+"."+selector.Sel.Name] = true
			}
		}
		return true
	})
	return nil
}
